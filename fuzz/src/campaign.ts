// A run: rounds of requests by everybody, each followed by requests of those who may change nothing, with a look at the state before
// and after the latter. Every request draws from a generator of its own, made from the seed and its number, so that what one answer
// teaches changes as little as possible of what follows.
import { Random } from '@sluice/testbed/random';
import { craft } from './craft.js';
import { Findings, type Finding } from './findings.js';
import { isPowerless, keyHolders, serviceKey, strangers, tenants, type Identity } from './identities.js';
import { judge } from './judge.js';
import { Knowledge } from './knowledge.js';
import { malformed } from './malformed.js';
import { operationsOf, type Operation } from './operations.js';
import { Sender } from './send.js';
import { differences, settled, stateOf } from './state.js';
import { raise, type Stage } from './stage.js';

export interface CampaignOptions {
  requests: number;
  seed: string;
  /** Ends after so long even if requests are left. */
  milliseconds?: number;
  /** Only routes whose address contains this. */
  only?: string;
  /** Where long bodies of findings are kept. */
  folder: string;
  say: (line: string) => void;
}

export interface Report {
  requests: number;
  operations: number;
  /** How many answers had which status. */
  statuses: Map<string, number>;
  /** Routes that never answered with a success: little of them was tried. */
  neverSucceeded: string[];
  findings: Finding[];
  memoryBytes: { before: number; after: number };
  seconds: number;
}

const atOnce = 12;
const patienceMs = 60_000;
const roundRequests = 10_000;
/** Of a round, for those who may change nothing. */
const powerlessShare = 0.4;
/** Wrong keys, and none. */
const strangerShare = 0.15;
const malformedShare = 0.01;
const malformedQuietMs = 300;
const tellEveryMs = 5_000;
/** More differences than these help nobody. */
const shownDifferences = 10;

export async function campaign(options: CampaignOptions): Promise<Report> {
  const stage = await raise();
  try {
    return await new Campaign(stage, options).run();
  } finally {
    await stage.stop();
  }
}

class Campaign {
  readonly #stage: Stage;
  readonly #options: CampaignOptions;
  readonly #operations: Operation[];
  /** Without what viewers may change: their own session. */
  readonly #refusable: Operation[];
  readonly #findings: Findings;
  readonly #sender: Sender;
  readonly #statuses = new Map<string, number>();
  readonly #succeeded = new Set<Operation>();
  readonly #deadline: number;
  readonly #known = new Knowledge({
    drive: ['main', 'archive'],
    path: ['a.txt', 'reports/b.txt', 'reports/2024/c.txt', 'new.txt'],
    queue: ['mail', 'default', 'letters'],
    name: ['main', 'archive', 'nightly'],
    number: ['0', '1', '2'],
    tenant: [...tenants],
    family: ['node', 'drive'],
    key: ['{"tenant":"acme","name":"main"}', '{"tenant":"acme","id":"1"}'],
    url: ['https://hooks.invalid/a', 'http://127.0.0.1:9/'],
    topics: ['events', 'events,uploads', 'overview'],
  });
  #sent = 0;

  constructor(stage: Stage, options: CampaignOptions) {
    this.#stage = stage;
    this.#options = options;
    this.#operations = operationsOf(stage.document).filter(({ path }) => path.includes(options.only ?? ''));
    const isOwn = ({ method, needs }: Operation): boolean =>
      needs === 'viewer' && method !== 'GET' && method !== 'HEAD';
    this.#refusable = this.#operations.filter((operation) => !isOwn(operation));
    this.#findings = new Findings(options.folder);
    this.#sender = new Sender(stage.url, { sockets: atOnce, patienceMs });
    this.#deadline = performance.now() + (options.milliseconds ?? Number.POSITIVE_INFINITY);
  }

  async run(): Promise<Report> {
    const began = performance.now();
    const before = (await this.#stage.memory()) ?? 0;
    const { say, requests } = this.#options;
    const seconds = (): number => (performance.now() - began) / 1_000;
    const progress = setInterval(
      () =>
        say(
          `${this.#sent} requests, ${Math.round(this.#sent / seconds())}/s, ${this.#findings.list.length} findings`,
        ),
      tellEveryMs,
    );
    try {
      while (this.#sent < requests && this.#goesOn()) {
        const end = Math.min(requests, this.#sent + roundRequests);
        await this.#volley(end - Math.floor((end - this.#sent) * powerlessShare), keyHolders);
        await this.#withoutAuthority(end);
      }
    } finally {
      clearInterval(progress);
      this.#sender.close();
    }
    await this.#lookAtServer();
    return {
      requests: this.#sent,
      operations: this.#operations.length,
      statuses: this.#statuses,
      neverSucceeded: this.#operations
        .filter((operation) => !this.#succeeded.has(operation))
        .map(({ method, path }) => `${method} ${path}`),
      findings: this.#findings.list,
      memoryBytes: { before, after: (await this.#stage.memory()) ?? 0 },
      seconds: seconds(),
    };
  }

  #goesOn(): boolean {
    return !this.#stage.hasEnded() && performance.now() < this.#deadline;
  }

  /** Requests of those who may change nothing, after which nothing is different. */
  async #withoutAuthority(end: number): Promise<void> {
    if (!this.#goesOn()) return;
    const before = await settled(this.#stage);
    const from = this.#sent;
    await this.#volley(end, keyHolders.filter(isPowerless));
    if (this.#stage.hasEnded()) return;
    const changed = differences(before, await stateOf(this.#stage));
    if (changed.length === 0) return;
    // What moved by itself meanwhile would do so again.
    const calm = await settled(this.#stage);
    const still = differences(calm, await settled(this.#stage));
    const blamed = changed.filter((name) => !still.includes(name));
    if (blamed.length > 0)
      this.#findings.tell(
        `something changed without authority: ${blamed.slice(0, shownDifferences).join(', ')}`,
        `between the requests ${from} and ${this.#sent}`,
      );
  }

  /** So many at once, until the requests up to `end` are sent. */
  async #volley(end: number, identities: Identity[]): Promise<void> {
    const sendOne = async (): Promise<void> => {
      while (this.#sent < end && this.#goesOn()) await this.#request(this.#sent++, identities);
    };
    await Promise.all(Array.from({ length: atOnce }, sendOne));
  }

  async #request(index: number, identities: Identity[]): Promise<void> {
    const random = new Random(`${this.#options.seed} ${index}`);
    const identity = random.pick(random.chance(strangerShare) ? strangers : identities);
    if (random.chance(malformedShare)) return this.#sendMalformed(random, identity);
    const isHarmless = identities.every(isPowerless);
    const operation = random.pick(isHarmless ? this.#refusable : this.#operations);
    const crafted = craft(operation, random, this.#known);
    const headers = { ...identity.headers, ...serviceHeaders(operation, identity), ...crafted.headers };
    const outcome = await this.#sender.send({ ...crafted, headers });
    const status = outcome.kind === 'answer' ? String(outcome.status) : outcome.kind;
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    for (const what of judge(crafted, identity, outcome))
      this.#findings.add(what, index, this.#stage.url, crafted, identity);
    const isSuccess = outcome.kind === 'stream' || /^[23]/.test(status);
    if (!isSuccess || crafted.method !== operation.method) return;
    this.#succeeded.add(operation);
    if (outcome.kind === 'answer') this.#learn(operation, outcome.text);
  }

  #learn({ group }: Operation, text: string): void {
    try {
      this.#known.learn(group, JSON.parse(text));
    } catch {
      // The bytes of a file.
    }
  }

  async #sendMalformed(random: Random, identity: Identity): Promise<void> {
    const request = malformed(random, identity.headers['Authorization'] ?? '');
    const answer = await this.#sender.raw(Buffer.from(request, 'latin1'), malformedQuietMs);
    this.#statuses.set('malformed', (this.#statuses.get('malformed') ?? 0) + 1);
    if (answer.startsWith('HTTP/1.1 5'))
      this.#findings.tell(
        `malformed HTTP was answered ${answer.slice(9, 12)}`,
        JSON.stringify(request.slice(0, 300)),
      );
  }

  async #lookAtServer(): Promise<void> {
    if (this.#stage.hasEnded())
      return this.#findings.tell('the server ended', this.#stage.output().slice(-3_000));
    const health = await fetch(`${this.#stage.url}/readyz`).then(
      async (reply) => `${reply.status} ${await reply.text()}`,
      (error: unknown) => String(error),
    );
    if (!health.startsWith('200')) this.#findings.tell('the server is not ready any more', health);
    if (/uncaught|unhandled/i.test(this.#stage.output()))
      this.#findings.tell('an error was caught by nobody', this.#stage.output().slice(-3_000));
  }
}

/** Services show a key of their own; those who may do everything know it here. */
function serviceHeaders({ path }: Operation, { role, installation }: Identity): Record<string, string> {
  return path.startsWith('/internal/') && role === 'admin' && installation
    ? { 'X-Service-Key': serviceKey }
    : {};
}
