// Light, dark, or as the system says; and the same colours for what is drawn on a canvas.

export type ThemeChoice = 'system' | 'light' | 'dark';
const KEY = 'commtune.theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

export function themeChoice(): ThemeChoice {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function setTheme(choice: ThemeChoice): void {
  if (choice === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice);
  applyTheme();
}

export function applyTheme(): void {
  const choice = themeChoice();
  const name = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice;
  document.documentElement.dataset['theme'] = name;
  for (const listener of listeners) listener();
}

/** Calls back after each change of theme, until the returned function is called. */
export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

dark.addEventListener('change', applyTheme);

/** Colours of charts, read from the style sheet's custom properties. */
export interface Palette {
  text: string;
  muted: string;
  line: string;
  faint: string;
  surface: string;
  accent: string;
  compute: string;
  reduce: string;
  distribute: string;
  exposed: string;
  measured: string;
  bound: string;
  good: string;
  warn: string;
  bad: string;
  series: string[];
  heat: string[];
}

export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const many = (name: string, number: number): string[] =>
    Array.from({ length: number }, (_, index) => read(`${name}-${index + 1}`));
  return {
    text: read('text'),
    muted: read('text-2'),
    line: read('line'),
    faint: read('line-faint'),
    surface: read('surface'),
    accent: read('accent'),
    compute: read('compute'),
    reduce: read('reduce'),
    distribute: read('distribute'),
    exposed: read('exposed'),
    measured: read('measured'),
    bound: read('bound'),
    good: read('good'),
    warn: read('warn'),
    bad: read('bad'),
    series: many('series', 10),
    heat: many('heat', 6),
  };
}
