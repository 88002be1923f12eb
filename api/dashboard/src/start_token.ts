// `tune serve` prints an address whose fragment carries the token of its start: no server and no log sees a fragment.

import { client } from './api/client';

/** Keeps the address's token for this tab and takes it out of the address, so that nobody shares it by copying. */
export function takeTokenFromAddress(): boolean {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return false;
  history.replaceState(history.state, '', location.pathname + location.search);
  if (token) client.token = token;
  return token !== '';
}

/** The same for an address that is pasted into a tab which shows this page already: the browser does not load it anew. */
export function takeTokensFromLaterAddresses(): void {
  window.addEventListener('hashchange', () => {
    if (takeTokenFromAddress()) location.reload();
  });
}
