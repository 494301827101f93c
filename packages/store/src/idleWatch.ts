// A watch for silence: it calls out when nothing has happened for a while, however long the whole takes. A large part on a slow
// line may need an hour; a store that takes no byte for half a minute has gone.

export class IdleWatch {
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(
    private readonly idleMs: number,
    private readonly onIdle: () => void,
  ) {
    this.run();
  }

  /** Something happened, or the wait for the other side begins: counts from now. */
  run(): void {
    if (this.#ended) return;
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#call(), this.idleMs);
    else this.#timer.refresh();
  }

  /** The other side is not to blame for what follows. */
  hold(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  end(): void {
    this.hold();
    this.#ended = true;
  }

  #call(): void {
    this.end();
    this.onIdle();
  }
}
