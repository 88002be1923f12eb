// The frame around every page: navigation, theme, token, and whether the service is there.

import { html, nothing, type TemplateResult } from 'lit-html';
import { client, Problem } from './api/client';
import { live } from './live';
import { icons } from './parts/icons';
import { setTheme, themeChoice, type ThemeChoice } from './theme';

interface Entry {
  readonly path: string;
  readonly text: string;
  readonly icon: TemplateResult;
}

const ENTRIES: readonly Entry[] = [
  { path: '/clusters', text: 'Clusters', icon: icons.clusters },
  { path: '/fits', text: 'Fits', icon: icons.fits },
  { path: '/plans', text: 'Plans', icon: icons.plans },
  { path: '/what-if', text: 'What if', icon: icons.whatif },
  { path: '/runs', text: 'Runs', icon: icons.runs },
  { path: '/tune', text: 'Tune', icon: icons.tune },
];

const THEMES: Record<ThemeChoice, { next: ThemeChoice; icon: TemplateResult; text: string }> = {
  system: { next: 'light', icon: icons.auto, text: 'Theme: as the system. Change to light' },
  light: { next: 'dark', icon: icons.sun, text: 'Theme: light. Change to dark' },
  dark: { next: 'system', icon: icons.moon, text: 'Theme: dark. Change to the system\'s' },
};

export class Shell {
  version = '';
  private wrong = '';

  constructor(private readonly redraw: () => void) {}

  view(path: string, page: unknown): TemplateResult {
    return html`<a class="skip" href="#content">To the content</a>
      <div class="shell">
        <header class="side">
          <a class="brand" href="/clusters">${icons.brand}<span>commtune</span></a>
          <nav class="nav" aria-label="Pages">
            ${ENTRIES.map((entry) => html`<a href=${entry.path} aria-current=${path.startsWith(entry.path) ? 'page' : nothing}>${entry.icon}<span>${entry.text}</span></a>`)}
          </nav>
          ${this.foot()}
        </header>
        <div>
          ${this.banner()}
          <main id="content" tabindex="-1"><div class="page">${page}</div></main>
        </div>
      </div>
      ${this.dialog()}`;
  }

  private foot(): TemplateResult {
    const states = { starting: ['warn', 'Connecting'], here: ['good', 'Service is here'], gone: ['bad', 'Service is away'], locked: ['warn', 'Needs a token'] } as const;
    const [kind, text] = states[live.state];
    const theme = THEMES[themeChoice()];
    return html`<div class="side-foot">
      <div class="service" role="status" data-service=${live.state}><i class="dot ${kind}"></i><span>${text}</span></div>
      <div class="row">
        <button class="icon" data-action="theme" title=${theme.text} aria-label=${theme.text} @click=${() => this.changeTheme(theme.next)}>
          ${theme.icon}
        </button>
        <button data-action="token" @click=${() => this.openDialog()}>Token</button>
      </div>
      <div class="version">${this.version ? `commtune ${this.version}` : nothing}</div>
    </div>`;
  }

  private changeTheme(choice: ThemeChoice): void {
    setTheme(choice);
    this.redraw();
  }

  private banner(): unknown {
    if (live.state === 'gone') {
      return html`<div class="banner" role="alert"><strong>The service does not answer.</strong> What you see may be old. Trying again every few seconds.</div>`;
    }
    if (live.state === 'locked') {
      return html`<div class="banner" role="alert"><strong>This service wants a token.</strong> <button data-action="give-token" @click=${() => this.openDialog()}>Give a token</button></div>`;
    }
    return nothing;
  }

  private element(): HTMLDialogElement | null {
    return document.querySelector('dialog#token');
  }

  openDialog(): void {
    const dialog = this.element();
    if (dialog && !dialog.open) dialog.showModal();
  }

  private dialog(): TemplateResult {
    const submit = (event: SubmitEvent): void => {
      event.preventDefault();
      const field = (event.target as HTMLFormElement).elements.namedItem('token') as HTMLInputElement;
      void this.tryToken(field.value.trim());
    };
    return html`<dialog id="token" aria-labelledby="token-title">
      <form @submit=${submit}>
        <h2 id="token-title">Token</h2>
        <p class="muted">What you may do here depends on it: read, plan, or operate. It stays in this tab and goes to this service only. <code>tune serve</code> prints one at its start that allows all.</p>
        <label class="field">Token
          <input type="password" name="token" autocomplete="off" spellcheck="false" aria-invalid=${this.wrong !== ''} aria-describedby="token-wrong" />
          <span class="wrong" id="token-wrong" role="alert">${this.wrong}</span>
        </label>
        <div class="row">
          <button class="primary" type="submit">Use it</button>
          <button type="button" @click=${() => this.element()?.close()}>Cancel</button>
          ${client.token ? html`<button type="button" data-action="forget" @click=${() => this.forget()}>Forget the present one</button>` : nothing}
        </div>
      </form>
    </dialog>`;
  }

  private forget(): void {
    client.token = '';
    this.element()?.close();
    this.redraw();
  }

  private async tryToken(token: string): Promise<void> {
    const before = client.token;
    client.token = token;
    try {
      await client.get('/v1/version');
      this.wrong = '';
      this.element()?.close();
      live.unlocked();
      live.dispatchEvent(new Event('back'));
    } catch (error) {
      const refused = error instanceof Problem && error.kind === 'unauthorized';
      this.wrong = refused ? 'The service does not accept this token.' : String(error instanceof Error ? error.message : error);
      client.token = before;
    }
    this.redraw();
  }
}
