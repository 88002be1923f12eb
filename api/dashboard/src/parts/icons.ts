import { svg, type TemplateResult } from 'lit-html';

const draw = (body: TemplateResult): TemplateResult =>
  svg`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${body}</svg>`;

export const icons = {
  clusters: draw(svg`<rect x="3" y="4" width="7" height="6" rx="1.5"/><rect x="14" y="4" width="7" height="6" rx="1.5"/><rect x="8.5" y="14.5" width="7" height="6" rx="1.5"/><path d="M6.5 10v2.2h11V10M12 12.2v2.3"/>`),
  fits: draw(svg`<path d="M4 4v16h16"/><path d="M6.5 16.5 19 6"/><circle cx="8.5" cy="13.2" r="1"/><circle cx="12" cy="13.2" r="1"/><circle cx="15.5" cy="7" r="1"/>`),
  plans: draw(svg`<path d="M4 6h8M8 12h10M13 18h7"/><path d="M4 12h.01M4 18h5"/>`),
  whatif: draw(svg`<path d="M4 7h9M17 7h3M4 17h3M11 17h9"/><circle cx="15" cy="7" r="2"/><circle cx="9" cy="17" r="2"/>`),
  runs: draw(svg`<path d="M3 12h4l3-7 4 14 3-7h4"/>`),
  tune: draw(svg`<path d="M12 3v4M12 17v4M3 12h4M17 12h4"/><circle cx="12" cy="12" r="4"/>`),
  empty: draw(svg`<path d="M3 13.5 6 5h12l3 8.5V19H3z"/><path d="M3 13.5h5l1.5 2.5h5l1.5-2.5h5"/>`),
  problem: draw(svg`<path d="M12 4 2.8 19.5h18.4z"/><path d="M12 10v4.5M12 17.2v.01"/>`),
  sun: draw(svg`<circle cx="12" cy="12" r="4"/><path d="M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M5.6 18.4 7 17M17 7l1.4-1.4"/>`),
  moon: draw(svg`<path d="M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z"/>`),
  auto: draw(svg`<circle cx="12" cy="12" r="8"/><path d="M12 4v16a8 8 0 0 0 0-16z" fill="currentColor"/>`),
  brand: svg`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#2b54d4"/><g fill="none" stroke="#fff" stroke-width="2.4" stroke-linecap="round"><path d="M6 10h9"/><path d="M11 16h12" stroke="#ffc46b"/><path d="M18 22h8" stroke="#6ee0c6"/></g></svg>`,
};
