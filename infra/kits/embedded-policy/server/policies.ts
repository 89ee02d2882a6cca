import type { Hono, MiddlewareHandler } from 'hono';
import type { SamplingCore } from '../core.ts';
import { readPublished, type ServerDirectories } from './directories.ts';
import { openPinnedVersions, type PinnedVersions } from './vllm/pinned-versions.ts';
import { createVllmRoutes } from './vllm/routes.ts';
import { loadInto, restorePublished } from './weights.ts';

/** The header in which a request names its policy. */
export const policyHeader = 'x-temper-policy';

/**
 * Policies that requests name in a header: each has whole weights, pauses and pinned versions apart from all others, so that
 * several runs can learn side by side. A policy has a sampler while it receives requests.
 */
export interface Policies {
  /** Answers requests that name a policy, and leaves all others to the next handler. */
  readonly handler: MiddlewareHandler;
  close(): Promise<void>;
}

export interface PoliciesOptions {
  readonly modelName: string;
  readonly modelDir: string;
  readonly directories: ServerDirectories;
  /** Starts a sampler on the base model. */
  open(): SamplingCore;
  /** Starts a smaller one, for a pinned version. */
  openPinned(): SamplingCore;
}

/** The time without any request after which a policy's sampler ends. Gateways ask about a policy while sessions sample it. */
const idleMs = 30_000;

interface ServedPolicy {
  readonly app: Hono;
  readonly core: SamplingCore;
  readonly pinned: PinnedVersions;
  /** Ends the sampler later. */
  idle: NodeJS.Timeout | undefined;
}

export function createPolicies(options: PoliciesOptions): Policies {
  const served = new Map<string, Promise<ServedPolicy>>();

  async function end(name: string): Promise<void> {
    const policy = served.get(name);
    served.delete(name);
    await policy?.then(closePolicy, () => {});
  }

  /** Ends the sampler unless requests run on it; then it is asked again later. */
  async function endIfIdle(name: string, policy: ServedPolicy): Promise<void> {
    const status = await policy.core.sampler.status().catch(() => null);
    if (status === null || status.running + status.waiting === 0) await end(name);
    else expectRequests(name, policy);
  }

  function expectRequests(name: string, policy: ServedPolicy): void {
    clearTimeout(policy.idle);
    policy.idle = setTimeout(() => void endIfIdle(name, policy), idleMs).unref();
  }

  /** Starts a policy. One that cannot start, or dies, is forgotten, so that the next request starts it again. */
  function start(name: string): Promise<ServedPolicy> {
    const starting = openPolicy(name, options);
    const forget = (): void => {
      if (served.get(name) === starting) served.delete(name);
    };
    starting.then(({ core }) => core.crashed.then(forget), forget);
    served.set(name, starting);
    return starting;
  }

  const handler: MiddlewareHandler = async (c, next) => {
    const name = c.req.header(policyHeader);
    if (name === undefined) return next();
    if (!/^[\w-]{1,64}$/.test(name)) return c.text(`${policyHeader}: expected letters, digits, "_" and "-"`, 400);
    const policy = await (served.get(name) ?? start(name));
    expectRequests(name, policy);
    return policy.app.fetch(c.req.raw);
  };
  return { handler, close: async () => void (await Promise.all([...served.keys()].map(end))) };
}

async function closePolicy({ core, pinned, idle }: ServedPolicy): Promise<void> {
  clearTimeout(idle);
  await Promise.all([core.close(), pinned.close()]);
}

async function openPolicy(name: string, options: PoliciesOptions): Promise<ServedPolicy> {
  const { modelName, modelDir } = options;
  const directories = options.directories.ofPolicy(name);
  const core = options.open();
  try {
    // Until a version is published, the base model is no version of this policy.
    if (readPublished(directories) === null) await core.sampler.setVersion('default');
    const loadedPath = await restorePublished(core, directories, modelDir);
    const pinned = openPinnedVersions(directories, (version) => loadInto(options.openPinned(), version, modelDir));
    const app = createVllmRoutes({ core, pinned, modelName, directories, loadedPath });
    return { app, core, pinned, idle: undefined };
  } catch (error) {
    await core.close();
    throw error;
  }
}
