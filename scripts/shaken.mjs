/**
 * Loaded into every Node process of a shaken test run (see `shake.mjs`): what sockets receive comes late now and then, and the process
 * stands still for moments, as on a machine that others use too. What one socket receives stays in order; what several receive does not,
 * and that is where tests and programs are wrong about who hears what first. Who sleeps for a moment now and then wakes up late: a test that
 * looks again and again finds that what it meant to catch under way is over.
 */
import { syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import timers from 'node:timers/promises';

const LATE_SHARE = 0.05;
const LATE_MS = 120;
const STALL_EVERY_MS = 1_500;
const STALL_MS = 400;
const OVERSLEPT_SHARE = 0.1;
const OVERSLEPT_MS = 300;

const push = Reflect.get(Socket.prototype, 'push');
const later = globalThis.setTimeout;
/** Of each socket what has come and is not handed on yet. */
const held = new WeakMap();

Socket.prototype.push = function (chunk, encoding) {
  const waiting = held.get(this);
  if (waiting) {
    waiting.push([chunk, encoding]);
    return true;
  }
  if (Math.random() >= LATE_SHARE) return push.call(this, chunk, encoding);
  held.set(this, [[chunk, encoding]]);
  later(handOn, Math.random() * LATE_MS, this);
  return true;
};

function handOn(socket) {
  const waiting = held.get(socket);
  held.delete(socket);
  for (const [chunk, encoding] of waiting) if (!socket.destroyed) push.call(socket, chunk, encoding);
}

const nothing = new Int32Array(new SharedArrayBuffer(4));
(function stall() {
  later(() => {
    // Most are short.
    Atomics.wait(nothing, 0, 0, Math.random() ** 2 * STALL_MS);
    stall();
  }, Math.random() * STALL_EVERY_MS).unref();
})();

const sleep = timers.setTimeout;
timers.setTimeout = (ms = 1, ...more) =>
  sleep(Math.random() < OVERSLEPT_SHARE ? ms + Math.random() * OVERSLEPT_MS : ms, ...more);
syncBuiltinESMExports();
