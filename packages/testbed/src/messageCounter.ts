/**
 * Counts whole Redis messages, requests or replies, in a stream of bytes that may be cut anywhere.
 *
 * Only lengths are understood, not contents: a line ends at CRLF, a bulk string carries its length, an aggregate
 * carries the number of values inside. That is all RESP2 and RESP3 need for finding where a message ends.
 * Out-of-band pushes answer no request and are not counted.
 */
const LINE_FEED = 10;
/** A line that carries a length is never longer; the rest of a long text line does not matter. */
const LENGTH_LINE_BYTES = 64;

export class MessageCounter {
  /** How many whole messages were read. */
  total = 0;
  /** Values still missing at each level of the message being read. */
  private readonly open: number[] = [];
  private line = '';
  private skipBytes = 0;

  read(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.skipBytes > 0) {
        const skipped = Math.min(this.skipBytes, chunk.length - at);
        at += skipped;
        this.skipBytes -= skipped;
        if (this.skipBytes === 0) this.valueEnded();
        continue;
      }
      const end = chunk.indexOf(LINE_FEED, at);
      const upTo = end === -1 ? chunk.length : end + 1;
      this.line += String.fromCharCode(...chunk.subarray(at, Math.min(upTo, at + LENGTH_LINE_BYTES)));
      at = upTo;
      if (end !== -1) this.lineEnded();
    }
  }

  private lineEnded(): void {
    const kind = this.line[0];
    const size = Number.parseInt(this.line.slice(1), 10);
    this.line = '';
    switch (kind) {
      case '$':
      case '=':
      case '!':
        if (size < 0) this.valueEnded();
        else this.skipBytes = size + 2;
        break;
      case '>':
        if (this.open.length === 0) this.total -= 1;
        this.aggregateBegan(size);
        break;
      case '*':
      case '~':
        this.aggregateBegan(size);
        break;
      case '%':
        this.aggregateBegan(size * 2);
        break;
      case '|':
        // Attributes come before the value they describe and are no value themselves.
        this.open.push(size * 2 + 1);
        break;
      default:
        this.valueEnded();
    }
  }

  private aggregateBegan(values: number): void {
    if (values > 0) this.open.push(values);
    else this.valueEnded();
  }

  private valueEnded(): void {
    while (this.open.length > 0) {
      this.open[this.open.length - 1]! -= 1;
      if (this.open[this.open.length - 1]! > 0) return;
      this.open.pop();
    }
    this.total += 1;
  }
}
