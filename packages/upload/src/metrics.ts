// Figures of uploads in Prometheus' text format, under the names that dashboards of upload services know.
type Labels = Record<string, string>;

/** Upper bounds in seconds. */
const bounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];

class Histogram {
  readonly #counts = Array.from({ length: bounds.length + 1 }, () => 0);
  #sum = 0;

  observe(seconds: number): void {
    const index = bounds.findIndex((bound) => seconds <= bound);
    this.#counts[index === -1 ? bounds.length : index]! += 1;
    this.#sum += seconds;
  }

  text(name: string, help: string): string {
    let below = 0;
    const lines = bounds.map((bound, i) => `${name}_bucket{le="${bound}"} ${(below += this.#counts[i]!)}`);
    const count = below + this.#counts[bounds.length]!;
    lines.push(`${name}_bucket{le="+Inf"} ${count}`, `${name}_sum ${this.#sum}`, `${name}_count ${count}`);
    return `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join('\n')}\n`;
  }
}

export class UploadMetrics {
  readonly #chunkLatency = new Histogram();
  readonly #storeLatency = new Histogram();
  readonly #completionLatency = new Histogram();
  #chunks = 0;
  #receivedBytes = 0;
  #storedBytes = 0;
  #readBackBytes = 0;
  #spilledBytes = 0;
  #completed = 0;
  #failed = 0;
  #refused = 0;

  chunkReceived(ms: number, bytes: number): void {
    this.#chunkLatency.observe(ms / 1_000);
    this.#receivedBytes += bytes;
  }

  chunkCommitted(): void {
    this.#chunks += 1;
  }

  stored(ms: number, bytes: number): void {
    this.#storeLatency.observe(ms / 1_000);
    this.#storedBytes += bytes;
  }

  completed(ms: number): void {
    this.#completionLatency.observe(ms / 1_000);
    this.#completed += 1;
  }

  failed(): void {
    this.#failed += 1;
  }

  refusedForRoom(): void {
    this.#refused += 1;
  }

  readBack(bytes: number): void {
    this.#readBackBytes += bytes;
  }

  spilled(bytes: number): void {
    this.#spilledBytes += bytes;
  }

  text(
    inRedis: { queuedChunks: number; reservedBytes: number; budgetBytes: number },
    waitingForRoom: number,
  ): string {
    return [
      line('repository_chunks_processed_total', 'counter', 'Chunks that were committed.', this.#chunks),
      this.#chunkLatency.text(
        'repository_upload_chunk_latency_seconds',
        'From the first byte of a chunk to its answer.',
      ),
      this.#storeLatency.text(
        'repository_s3_upload_latency_seconds',
        'Writing a part or an object to the store.',
      ),
      this.#completionLatency.text(
        'repository_upload_completion_latency_seconds',
        'From the first chunk to COMPLETED.',
      ),
      line(
        'repository_chunks_queued',
        'gauge',
        'Chunks that wait in Redis for their part.',
        inRedis.queuedChunks,
      ),
      line(
        'sluice_upload_buffer_bytes',
        'gauge',
        'Memory for chunks that uploads have reserved.',
        inRedis.reservedBytes,
      ),
      line(
        'sluice_upload_buffer_limit_bytes',
        'gauge',
        'What all uploads may reserve together.',
        inRedis.budgetBytes,
      ),
      line('sluice_upload_received_bytes_total', 'counter', 'Bytes of chunks.', this.#receivedBytes),
      line('sluice_upload_stored_bytes_total', 'counter', 'Bytes written to the store.', this.#storedBytes),
      line(
        'sluice_upload_read_back_bytes_total',
        'counter',
        'Bytes read again to verify them.',
        this.#readBackBytes,
      ),
      line(
        'sluice_upload_spilled_bytes_total',
        'counter',
        'Bytes of idle uploads moved to staging.',
        this.#spilledBytes,
      ),
      line('sluice_uploads_total', 'counter', 'Uploads that ended.', this.#completed, { state: 'COMPLETED' }),
      `sluice_uploads_total{state="FAILED"} ${this.#failed}\n`,
      line('sluice_upload_waiting_chunks', 'gauge', 'Chunks that wait for room, unread.', waitingForRoom),
      line(
        'sluice_upload_refused_total',
        'counter',
        'Chunks refused because there was no room.',
        this.#refused,
      ),
    ].join('');
  }
}

function line(
  name: string,
  kind: 'counter' | 'gauge',
  help: string,
  value: number,
  labels: Labels = {},
): string {
  const inner = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  const braces = inner.length > 0 ? `{${inner.join(',')}}` : '';
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name}${braces} ${value}\n`;
}
