import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { LastingRefusal, SandboxFailure } from '../failure.ts';
import { labelsOf, stackLabel, storedSpecOf } from '../labels.ts';
import { createLimiter } from '../limiter.ts';
import type {
  Sandbox,
  SandboxDescription,
  SandboxInfo,
  SandboxNeeds,
  SandboxProvider,
  SandboxSpec,
  UnsupportedReason,
} from '../sandbox.ts';
import { createReports, type Reports, type SandboxReports } from '../shell/reports.ts';
import { createShellSandbox } from '../shell/sandbox.ts';
import { createE2bApi, type E2bApi, type Listed } from './api.ts';
import { type Ensuring, ensureListed, type Found, findByName, findKnown, leaseUntil, nameLabel } from './create.ts';
import { createEnvd, createEnvdConnections } from './envd.ts';
import { createLease } from './lease.ts';
import { isSetUp, setUp } from './set-up.ts';
import type { E2bSettings } from './settings.ts';
import { createE2bShell, type E2bShell } from './shell.ts';
import { createTemplates, type Templates } from './templates.ts';

export interface E2bProviderOptions extends E2bSettings {
  readonly stack: string;
}

const kind = 'e2b' as const;

/** Creates sandboxes at E2B, or at any server that speaks its API: microVMs made from templates, out of reach of this host. */
export function createE2bProvider(options: E2bProviderOptions): SandboxProvider {
  const { stack, longestMs } = options;
  const api = createE2bApi(options);
  const templates = createTemplates(options.templates, api);
  const connections = createEnvdConnections();
  const reports = createReports();
  /** The ids that this process got for names. A list may lack a new sandbox for a while. */
  const known = new Map<string, string>();
  const shellOf: OpenShell = (name, { access, leaseMs }) => {
    const endMs = Date.now() + leaseMs;
    const lease = createLease({ endMs, renew: (ms) => api.renew(access.id, ms) });
    const shell = createE2bShell({ name, id: access.id, api, envd: createEnvd(access, connections), lease });
    return { shell, reports: reports.of(access.id) };
  };
  const creation = createCreation({ api, templates, longestMs, known, creates: options.creates, shellOf });
  return {
    kind,
    programs: 'image',
    sharesProcesses: true,
    givesRoot: false,
    carriesChanges: false,
    channels: ['stream'],
    longestLifetimeMs: longestMs,
    prepare: async ({ image }) => {
      await templates.of(image);
      return image;
    },
    imageId: async (image) => {
      const { name, metadata } = await templates.of(image);
      if (Object.keys(metadata).length > 0) return `${name} with ${image}`;
      return `${name}@${(await api.buildOf(name)) ?? 'unknown'}`;
    },
    evictImages: async () => [],
    ensure: creation,
    attach: createAttachment({ api, stack, longestMs, known, shellOf }),
    renew: async (name, expiresAtMs) => {
      const leaseMs = leaseUntil(expiresAtMs, longestMs);
      const found = await findAll({ api, known, stack }, name);
      const renewed = await Promise.all(found.map(({ sandboxId }) => api.renew(sandboxId, leaseMs)));
      return renewed.includes(true);
    },
    remove: (name) => removeAll({ api, reports, known, stack }, name),
    list: async (ofStack) => (await api.find({ [stackLabel]: ofStack })).flatMap(infoOf),
    // The server finishes a removal that it has accepted.
    clearLeftovers: async () => undefined,
    supports: (needs) => refusal(templates, needs),
    describe: () => describe(options, api),
    close: () => connections.destroy(),
  };
}

type OpenShell = (name: string, found: Found) => { readonly shell: E2bShell; readonly reports: SandboxReports };

interface Creation extends Ensuring {
  readonly creates: number;
  readonly known: Map<string, string>;
  readonly shellOf: OpenShell;
}

/** Creates `ensure`. A second request for a name waits for the first, and then finds what that made. */
function createCreation({ creates, shellOf, known, ...ensuring }: Creation): SandboxProvider['ensure'] {
  const creations = createLimiter(creates);
  const underWay = new Map<string, Promise<Sandbox>>();
  const create = async (spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> => {
    const found = await creations.run(() => ensureListed({ ...ensuring, known }, spec, signal), signal);
    known.set(spec.name, found.access.id);
    const handle = shellOf(spec.name, found);
    await setUp(handle.shell, spec, signal);
    return createShellSandbox({ kind, ...handle, labels: spec.labels, spec });
  };
  return async (spec, signal) => {
    signal.throwIfAborted();
    const before = underWay.get(spec.name);
    const next = (before?.catch(() => undefined) ?? Promise.resolve()).then(() => create(spec, signal));
    underWay.set(spec.name, next);
    const done = (): void => {
      if (underWay.get(spec.name) === next) underWay.delete(spec.name);
    };
    next.then(done, done);
    return next;
  };
}

interface Known {
  readonly api: E2bApi;
  readonly known: Map<string, string>;
  readonly stack: string;
}

/** Finds the sandboxes of a name, the oldest first, or the one that this process got for it, which the list may lack yet. */
async function findAll({ api, known, stack }: Known, name: string): Promise<readonly Listed[]> {
  const own = await findKnown(api, known, name);
  return own === undefined ? findByName(api, stack, name) : [own];
}

interface Attachment extends Known, Pick<Creation, 'longestMs' | 'shellOf'> {}

/**
 * Creates `attach`. While lists lag, a process that begins again may have made a second sandbox by one name, in which it then worked.
 * So of several the youngest that was set up is the sandbox.
 */
function createAttachment({ longestMs, shellOf, ...by }: Attachment): SandboxProvider['attach'] {
  return async (name) => {
    const found = await findAll(by, name);
    for (const { sandboxId, metadata } of found.toReversed()) {
      const labels = labelsOf(metadata);
      const spec = storedSpecOf(metadata);
      if (!labels || !spec) continue;
      const leaseMs = leaseUntil(labels.expiresAtMs, longestMs);
      const access = await by.api.open(sandboxId, leaseMs);
      if (!access) continue;
      const handle = shellOf(name, { access, leaseMs });
      if (found.length > 1 && !(await isSetUp(handle.shell))) continue;
      by.known.set(name, sandboxId);
      return createShellSandbox({ kind, ...handle, labels, spec });
    }
    return undefined;
  };
}

/** Ends every sandbox of a name, also one that the list lacks yet. */
async function removeAll(
  { api, reports, known, stack }: Known & { readonly reports: Reports },
  name: string,
): Promise<boolean> {
  const listed = (await findByName(api, stack, name)).map(({ sandboxId }) => sandboxId);
  const own = known.get(name);
  let removed = false;
  for (const id of new Set([...listed, ...(own === undefined ? [] : [own])])) {
    removed = (await api.kill(id)) || removed;
    reports.forget(id);
  }
  known.delete(name);
  return removed;
}

function infoOf({ metadata, startedAt, state }: Listed): readonly SandboxInfo[] {
  const labels = labelsOf(metadata);
  const name = metadata[nameLabel];
  if (labels === undefined || name === undefined) return [];
  return [{ name, kind, labels, createdAtMs: startedAt.getTime(), running: state === 'running' }];
}

async function refusal(templates: Templates, { task, image }: SandboxNeeds): Promise<UnsupportedReason | undefined> {
  try {
    await templates.of(image);
    return undefined;
  } catch (error) {
    if (!(error instanceof SandboxFailure) || error.type !== 'MissingImage') throw error;
    return { type: 'MissingImage', message: `task ${task}: ${error.message}` };
  }
}

async function describe({ url }: E2bSettings, api: E2bApi): Promise<SandboxDescription> {
  const common = {
    kind,
    protects: [
      'this host: nothing of a task runs on it',
      'other sandboxes, by what the server isolates them with; E2B itself uses microVMs',
      'hidden tests, claims, results and logs: the keeper, the grader and the agent are three uids',
      'memory and CPU: limited by the template',
    ],
    doesNotProtect: [
      'what a task holds from the operator of the server',
      'the disk immediately: the quota is checked every two seconds, while the size of a single file is limited at once',
    ],
  };
  const where = url ?? "E2B's cloud";
  try {
    await api.probe();
    return { ...common, ready: true, summary: `E2B API at ${where}` };
  } catch (error) {
    const summary = `${where}: ${errorMessage(error)}`;
    return {
      ...common,
      ready: false,
      summary,
      ...(!(error instanceof LastingRefusal) && { mayComeUp: true as const }),
    };
  }
}
