// Numbers as people of this field read them: µs to s, KiB and MiB, GB/s (10⁹ bytes a second).

const THIN = '\u202f'; // narrow no-break space between number and unit

/** Three significant digits without an exponent; thousands are grouped. */
export function significant(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.max(0, digits - 1 - size);
  return grouped(value.toFixed(Math.min(decimals, 12)));
}

/** Samples a second; null: the profile does not say the batch. */
export function samplesRate(samplesPerSecond: number | null): string {
  return samplesPerSecond === null ? 'unknown' : significant(samplesPerSecond, 4);
}

export function batchText(batch: number): string {
  return batch > 0 ? String(batch) : 'unknown';
}

function grouped(text: string): string {
  const [whole = '', fraction] = text.split('.');
  const parted = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return fraction === undefined ? parted : `${parted}.${fraction}`;
}

function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const magnitude = Math.abs(value);
  // 0.9995 of a unit already rounds up to it at three digits.
  const unit = units.find(([scale]) => magnitude >= scale * 0.9995) ?? units[units.length - 1]!;
  return `${significant(value / unit[0])}${THIN}${unit[1]}`;
}

export function time(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds === 0) return `0${THIN}s`;
  if (Math.abs(seconds) >= 600) return `${significant(seconds / 60)}${THIN}min`;
  return scaled(seconds, [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']]);
}

/** Times that stand in one column or on one axis share the unit of the largest. */
export function timeUnit(largest: number): { scale: number; unit: string } {
  for (const [scale, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']] as const)
    if (largest >= scale) return { scale, unit };
  return { scale: 1e-9, unit: 'ns' };
}

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let index = 0;
  while (Math.abs(value) >= 1024 && index < units.length - 1) {
    value /= 1024;
    ++index;
  }
  const text = index === 0 || Number.isInteger(value) ? grouped(String(Math.round(value))) : significant(value);
  return `${text}${THIN}${units[index]}`;
}

/** A step between ticks on an axis of bytes: a power of two that gives at most `ticks` of them. */
export function sizeStep(largest: number, ticks = 8): number {
  return Math.pow(2, Math.ceil(Math.log2(Math.max(1, largest / ticks))));
}

export function rate(bytesPerSecond: number | null | undefined): string {
  if (bytesPerSecond === null || bytesPerSecond === undefined || !Number.isFinite(bytesPerSecond)) return '–';
  return `${significant(bytesPerSecond / 1e9)}${THIN}GB/s`;
}

/** A cost per byte as the rate it allows. A fit whose rate no machine has saw no cost per byte. */
export function rateOf(secondsPerByte: number): string {
  return secondsPerByte > 1e-14 ? rate(1 / secondsPerByte) : 'no limit seen';
}

export function percent(ratio: number | null | undefined, digits = 1): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return '–';
  return `${(ratio * 100).toFixed(digits)}${THIN}%`;
}

export function signedPercent(ratio: number | null | undefined, digits = 1): string {
  if (ratio === null || ratio === undefined || !Number.isFinite(ratio)) return '–';
  const text = percent(Math.abs(ratio), digits);
  if (Math.abs(ratio) * 100 < 0.5 * 10 ** -digits) return text;
  return `${ratio < 0 ? '−' : '+'}${text}`;
}

export function count(value: number): string {
  return Number.isInteger(value) ? grouped(String(value)) : significant(value);
}

/** Times three, say: a factor that a slider sets. */
export function factor(value: number): string {
  return `×${THIN}${Number(value.toPrecision(value < 1 ? 2 : 3))}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

export function date(iso: string | null | undefined): string {
  return iso ? DATE.format(new Date(iso)) : '–';
}

/** "3 minutes ago"; the full date belongs into the element's title. */
export function age(iso: string | null | undefined, now = Date.now()): string {
  if (!iso) return 'never';
  const seconds = Math.max(0, (now - new Date(iso).getTime()) / 1000);
  for (const [span, word] of [[86400 * 365, 'year'], [86400 * 30, 'month'], [86400, 'day'], [3600, 'hour'], [60, 'minute']] as const)
    if (seconds >= span) return `${plural(Math.floor(seconds / span), word)} ago`;
  return seconds < 5 ? 'just now' : `${Math.floor(seconds)} seconds ago`;
}
