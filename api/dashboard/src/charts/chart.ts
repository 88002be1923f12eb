// The element that draws a chart: <ct-chart>. It follows its size and the theme, and is an image to those who listen.

import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import { init, use, type ECharts } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import type { EChartsOption } from 'echarts';
import { onTheme, palette, type Palette } from '../theme';

use([
  BarChart, CustomChart, LineChart, ScatterChart,
  DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent,
  CanvasRenderer,
]);

export interface ChartSpec {
  /** Made anew for each theme. */
  option(colors: Palette, width: number): EChartsOption;
  /** A chart whose key has not changed keeps its zoom. */
  readonly key: string;
  /** It has been dealt with when the identity is the same. */
  readonly data: unknown;
  /** Called with what was clicked. */
  onClick?(event: { seriesId?: string; dataIndex: number; data: unknown }): void;
  /** Arrow keys and + and - move and zoom along x. */
  readonly zooms?: boolean;
}

const SANS = 'Inter, "Segoe UI", system-ui, -apple-system, Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';

/** What all charts have in common. */
function common(colors: Palette): EChartsOption {
  return {
    animation: !window.matchMedia('(prefers-reduced-motion: reduce)').matches,
    animationDuration: 250,
    animationDurationUpdate: 200,
    textStyle: { fontFamily: SANS, color: colors.muted },
    backgroundColor: 'transparent',
    aria: { enabled: false },
  };
}

export const TOOLTIP = (colors: Palette): object => ({
  confine: true,
  backgroundColor: colors.surface,
  borderColor: colors.line,
  borderWidth: 1,
  padding: [8, 12],
  textStyle: { color: colors.text, fontSize: 12.5 },
  extraCssText: 'box-shadow: 0 4px 16px rgb(0 0 0 / 18%); border-radius: 8px;',
});

/** A grid's place is that of its axes' labels and names. */
export const BOUNDS = { outerBoundsMode: 'same', outerBoundsContain: 'all' } as const;

/** Axis looks. */
export function axis(colors: Palette, name: string, more: object = {}): object {
  return {
    name,
    nameLocation: 'middle',
    nameTextStyle: { color: colors.muted, fontSize: 12 },
    axisLine: { onZero: false, lineStyle: { color: colors.line } },
    axisTick: { lineStyle: { color: colors.line } },
    axisLabel: { color: colors.muted, fontSize: 11.5, hideOverlap: true },
    splitLine: { lineStyle: { color: colors.faint } },
    minorSplitLine: { show: false },
    ...more,
  };
}

/** A tooltip's content as elements: no text of the data is ever taken for markup. */
export function tip(title: string, rows: readonly (readonly [string, string])[], note = ''): HTMLElement {
  const box = document.createElement('div');
  box.className = 'tip';
  const heading = document.createElement('b');
  heading.textContent = title;
  box.append(heading);
  const list = document.createElement('dl');
  for (const [name, value] of rows) {
    const term = document.createElement('dt');
    term.textContent = name;
    const what = document.createElement('dd');
    what.textContent = value;
    list.append(term, what);
  }
  box.append(list);
  if (note) {
    const text = document.createElement('div');
    text.textContent = note;
    box.append(text);
  }
  return box;
}

class ChartElement extends HTMLElement {
  private chart: ECharts | undefined;
  private current: ChartSpec | undefined;
  private drawn: { key: string; data: unknown } | undefined;
  private readonly sizes = new ResizeObserver(() => this.resized());
  private forgetTheme: (() => void) | undefined;
  private frame = 0;

  set spec(spec: ChartSpec) {
    this.current = spec;
    this.schedule();
  }

  set label(text: string) {
    this.setAttribute('aria-label', text);
  }

  /** For tests and tools: the chart of ECharts. */
  get instance(): ECharts | undefined {
    return this.chart;
  }

  /** For tests and tools: what the chart shows, in the order in which it is drawn; its data, as the spec has it. */
  get shown(): unknown {
    return this.drawn?.data;
  }

  connectedCallback(): void {
    this.setAttribute('role', 'img');
    this.sizes.observe(this);
    this.forgetTheme = onTheme(() => {
      this.drawn = undefined;
      this.schedule();
    });
    this.addEventListener('keydown', this.onKey);
    this.schedule();
  }

  disconnectedCallback(): void {
    this.sizes.disconnect();
    this.forgetTheme?.();
    this.removeEventListener('keydown', this.onKey);
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.chart?.dispose();
    this.chart = undefined;
    this.drawn = undefined;
  }

  private schedule(): void {
    if (this.frame || !this.isConnected) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private draw(): void {
    const spec = this.current;
    if (!spec || this.clientWidth === 0) return;
    if (this.drawn && this.drawn.data === spec.data && this.drawn.key === spec.key) return;
    if (!this.chart) {
      this.chart = init(this, null, { renderer: 'canvas' });
      this.chart.on('click', (event) => this.current?.onClick?.(event as never));
    }
    if (spec.zooms) this.tabIndex = 0;
    else this.removeAttribute('tabindex');
    const keep = this.drawn?.key === spec.key;
    const zoom = keep ? this.zoom() : undefined;
    const colors = palette();
    this.chart.setOption({ ...common(colors), ...spec.option(colors, this.clientWidth) }, { notMerge: true });
    if (zoom) this.chart.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, ...zoom });
    this.drawn = { key: spec.key, data: spec.data };
    this.dataset['drawn'] = 'yes';
  }

  private resized(): void {
    if (!this.chart) {
      this.schedule();
      return;
    }
    this.chart.resize();
  }

  private zoom(): { start: number; end: number } | undefined {
    const option = this.chart?.getOption() as { dataZoom?: { start?: number; end?: number }[] } | undefined;
    const first = option?.dataZoom?.[0];
    return first && first.start !== undefined && first.end !== undefined ? { start: first.start, end: first.end } : undefined;
  }

  /** Zooms about the middle by a factor, and moves by a part of what is seen. */
  zoomBy(scale: number, move = 0): void {
    const zoom = this.zoom();
    if (!zoom || !this.chart) return;
    const width = Math.min(100, Math.max(0.05, (zoom.end - zoom.start) * scale));
    const middle = (zoom.start + zoom.end) / 2 + move * (zoom.end - zoom.start);
    const start = Math.min(100 - width, Math.max(0, middle - width / 2));
    this.chart.dispatchAction({ type: 'dataZoom', dataZoomIndex: 0, start, end: start + width });
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    if (!this.current?.zooms || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      '+': () => this.zoomBy(0.7), '=': () => this.zoomBy(0.7), '-': () => this.zoomBy(1 / 0.7), '0': () => this.zoomBy(1e9),
      ArrowLeft: () => this.zoomBy(1, -0.2), ArrowRight: () => this.zoomBy(1, 0.2),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
}

customElements.define('ct-chart', ChartElement);
export type { ChartElement };
