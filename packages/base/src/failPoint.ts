// Places between two steps where a test may kill, freeze or disturb this process: `npm run chaos` arms them and then proves
// that nothing was lost. Unarmed, which is always outside of such tests, a fail point costs one comparison. They stand per call
// to a server and never per job, and are named `<what>.<the step that has just been taken>`.

/** `freeze` stops the whole process (SIGSTOP) until somebody continues it; blocking stops only the thread that met the point. */
export type FailAction = 'kill' | 'freeze' | 'throw' | { blockMs: number };

let armed: ((name: string) => FailAction | undefined) | undefined;

export function failPoint(name: string): void {
  if (armed !== undefined) act(name, armed(name));
}

/** @internal `choose` says what happens at each point from now on. A thread arms its own points; undefined disarms them. */
export function armFailPoints(choose: ((name: string) => FailAction | undefined) | undefined): void {
  armed = choose;
}

function act(name: string, action: FailAction | undefined): void {
  if (action === undefined) return;
  if (action === 'kill') process.kill(process.pid, 'SIGKILL');
  else if (action === 'freeze') process.kill(process.pid, 'SIGSTOP');
  else if (action === 'throw') throw new Error(`fail point ${name}`);
  else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, action.blockMs);
}
