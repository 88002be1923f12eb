// Every view is an address that can be shared: the path says what, the query how.

export interface Route {
  readonly path: string;
  readonly parts: string[];
  readonly query: URLSearchParams;
}

export function currentRoute(): Route {
  const path = location.pathname;
  return { path, parts: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(location.search) };
}

export function navigate(url: string): void {
  history.pushState(null, '', url);
  window.dispatchEvent(new Event('route'));
}

/** Changes the query in place: what a control shows, without a new page in the history. Empty values go. */
export function setQuery(changes: Record<string, string | number | undefined | null>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  history.replaceState(null, '', text ? `${location.pathname}?${text}` : location.pathname);
}

/** Calls back after each change of page. Clicks on links of ours do not load the page again. */
export function startRouter(onRoute: () => void): void {
  window.addEventListener('popstate', onRoute);
  window.addEventListener('route', onRoute);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const anchor = (event.target as Element).closest('a');
    if (!anchor || anchor.target || anchor.hasAttribute('download') || anchor.origin !== location.origin) return;
    if (anchor.dataset['outside'] !== undefined) return;
    if (anchor.pathname === location.pathname && anchor.hash) return;
    event.preventDefault();
    if (anchor.href !== location.href) navigate(anchor.href);
  });
}
