// A progress bar on stderr, for people only: nothing is drawn where there is no terminal, with --quiet or with a terminal that knows
// no cursor. It is drawn a few times a second at most, on one line, and wiped before anything else is said.
import { bytes, counted, duration } from './human.js';
import type { Output } from './output.js';
import { safeLine } from './sanitise.js';
import { cutText, padText } from './textWidth.js';

const redrawMs = 100;
/** Speed is that of the last seconds, so that a stall shows. */
const speedWindowMs = 5_000;
const barColumns = 24;
const wipe = '\r\x1b[2K';

export class ProgressBar {
  readonly #out: Output;
  readonly #isShown: boolean;
  readonly #samples: { atMs: number; done: number }[] = [];
  #total: number | undefined;
  #done = 0;
  #files = { ended: 0, all: 0 };
  #label = '';
  #drawnMs = 0;
  #isDrawn = false;

  constructor(out: Output) {
    this.#out = out;
    this.#isShown = !!out.stderr.isTTY && !out.isQuiet;
  }

  /** Undefined while nobody knows how much it will be. */
  expect(total: number | undefined, files = 1): void {
    this.#total = total;
    this.#files.all = files;
  }

  set(done: number, label: string): void {
    this.#done = done;
    this.#label = label;
    this.#draw(false);
  }

  endFile(): void {
    this.#files.ended += 1;
    this.#draw(true);
  }

  /** Runs something that writes to the terminal, with the bar out of the way. */
  aside(write: () => void): void {
    this.#wipe();
    write();
    this.#draw(true);
  }

  end(): void {
    this.#wipe();
  }

  #draw(force: boolean): void {
    if (!this.#isShown) return;
    const now = performance.now();
    if (!force && now - this.#drawnMs < redrawMs) return;
    this.#drawnMs = now;
    this.#isDrawn = true;
    const columns = this.#out.stderr.columns ?? 80;
    this.#out.stderr.write(wipe + cutText(this.#text(now), columns - 1));
  }

  #text(now: number): string {
    const speed = this.#speed(now);
    const { ended, all } = this.#files;
    const parts: string[] = [];
    if (this.#total !== undefined) {
      const share = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total);
      const full = Math.floor(share * barColumns);
      parts.push(`[${'█'.repeat(full)}${'░'.repeat(barColumns - full)}]`);
      parts.push(padText(`${Math.floor(share * 100)} %`, 5, 'right'));
      parts.push(`${bytes(this.#done)} of ${bytes(this.#total)}`);
    } else parts.push(bytes(this.#done));
    if (speed > 0) parts.push(`${bytes(speed)}/s`);
    if (speed > 0 && this.#total !== undefined && this.#done < this.#total)
      parts.push(`${duration(wholeSeconds((this.#total - this.#done) / speed))} left`);
    if (all > 1) parts.push(`${ended} of ${counted(all, 'file')}`);
    parts.push(safeLine(this.#label));
    return parts.join('  ');
  }

  #speed(now: number): number {
    this.#samples.push({ atMs: now, done: this.#done });
    while (this.#samples.length > 2 && now - this.#samples[0]!.atMs > speedWindowMs) this.#samples.shift();
    const first = this.#samples[0]!;
    return now > first.atMs ? ((this.#done - first.done) / (now - first.atMs)) * 1_000 : 0;
  }

  #wipe(): void {
    if (this.#isDrawn) this.#out.stderr.write(wipe);
    this.#isDrawn = false;
  }
}

/** Nobody reads the milliseconds of a guess. */
function wholeSeconds(seconds: number): number {
  return Math.ceil(seconds) * 1_000;
}
