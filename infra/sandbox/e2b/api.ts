import { SandboxNotFoundError, Sandbox as SdkSandbox, type SandboxInfo as SdkSandboxInfo, Template } from 'e2b';
import { callApi, orWrongAddress, statusOf } from './failures.ts';
import type { E2bSettings } from './settings.ts';

/** The way to a sandbox's own daemon, envd. */
export interface EnvdAccess {
  readonly id: string;
  readonly url: string;
  /** The secret of this one sandbox. */
  readonly token: string | undefined;
}

/** A sandbox as the server describes it. */
export type Listed = Pick<
  SdkSandboxInfo,
  'sandboxId' | 'metadata' | 'startedAt' | 'endAt' | 'state' | 'cpuCount' | 'memoryMB' | 'envdVersion'
>;

export interface NewSandbox {
  readonly template: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly leaseMs: number;
}

/** The calls of the server's API that temper makes. They throw a `SandboxFailure`, except `create`, which throws what the SDK does. */
export interface E2bApi {
  create(request: NewSandbox, signal: AbortSignal): Promise<EnvdAccess>;
  /** Returns the way into a sandbox, which it resumes if it is paused. Undefined if it is gone. It only lengthens a lease. */
  open(id: string, leaseMs: number): Promise<EnvdAccess | undefined>;
  /** Lists the account's sandboxes that have all of these entries in their metadata. */
  find(metadata: Readonly<Record<string, string>>): Promise<readonly Listed[]>;
  /** Undefined if there is no such sandbox any more. */
  info(id: string): Promise<Listed | undefined>;
  /** Ends a sandbox. Returns whether there was one. */
  kill(id: string): Promise<boolean>;
  /** Sets the end of a sandbox's lease to this time from now. Returns whether there is such a sandbox. */
  renew(id: string, leaseMs: number): Promise<boolean>;
  hasTemplate(name: string): Promise<boolean>;
  /** Returns the id of the build that a template's name stands for now; undefined if the server has no such notion. */
  buildOf(template: string): Promise<string | undefined>;
  /** Asks for one sandbox, which proves the address and the key. */
  probe(): Promise<void>;
}

const requestTimeoutMs = 60_000;
const pageSize = 100;

/** The SDK's sandbox, which keeps the way to envd from its callers. */
class Opened extends SdkSandbox {
  get access(): EnvdAccess {
    const { sandboxId, sandboxDomain, envdPort } = this;
    const url = this.connectionConfig.getSandboxUrl(sandboxId, { sandboxDomain, envdPort });
    return { id: sandboxId, url, token: this.envdAccessToken };
  }
}

type Connection = Readonly<Record<'apiUrl' | 'sandboxUrl' | 'domain', string | undefined>>;

/** Returns the addresses that the SDK needs. `https://api.DOMAIN` serves sandboxes at DOMAIN, as E2B's own servers do. */
export function connectionOf({ url, sandboxUrl }: Pick<E2bSettings, 'url' | 'sandboxUrl'>): Connection {
  if (url === null) return { apiUrl: undefined, sandboxUrl: sandboxUrl ?? undefined, domain: undefined };
  const { host } = new URL(url);
  const domain = host.startsWith('api.') ? host.slice('api.'.length) : undefined;
  return { apiUrl: url, domain, sandboxUrl: sandboxUrl ?? (domain === undefined ? url : undefined) };
}

/** Returns the options of a call of the SDK. */
export async function sdkOptions(settings: Pick<E2bSettings, 'url' | 'sandboxUrl' | 'apiKey'>) {
  const { apiUrl, sandboxUrl, domain } = connectionOf(settings);
  return {
    apiKey: await settings.apiKey(),
    debug: false,
    requestTimeoutMs,
    // The stage waits, and not while it holds a place among the creations.
    retries: 0,
    ...(apiUrl !== undefined && { apiUrl }),
    ...(sandboxUrl !== undefined && { sandboxUrl }),
    ...(domain !== undefined && { domain }),
  };
}

export function createE2bApi(settings: Pick<E2bSettings, 'url' | 'sandboxUrl' | 'apiKey'>): E2bApi {
  const options = () => sdkOptions(settings);
  return {
    async create({ template, metadata, leaseMs }, signal) {
      const created = await Opened.create(template, {
        ...(await options()),
        metadata: { ...metadata },
        timeoutMs: leaseMs,
        allowInternetAccess: false,
        network: { allowPublicTraffic: false },
        lifecycle: { onTimeout: 'kill' },
        signal,
      });
      return created.access;
    },
    open: (id, leaseMs) =>
      callApi(`connect to sandbox ${id}`, async () => {
        const opened = await Opened.connect(id, { ...(await options()), timeoutMs: leaseMs }).catch(orIfMissing);
        return opened?.access;
      }),
    find: (metadata) =>
      callApi('list sandboxes', async () => {
        const pages = SdkSandbox.list({ ...(await options()), query: { metadata: { ...metadata } }, limit: pageSize });
        const found: Listed[] = [];
        while (pages.hasNext) found.push(...(await pages.nextItems()));
        // A compatible server may ignore the filter.
        return found.filter((one) => Object.entries(metadata).every(([key, value]) => one.metadata[key] === value));
      }),
    info: (id) =>
      callApi(`look at sandbox ${id}`, async () => SdkSandbox.getInfo(id, await options()).catch(orIfMissing)),
    kill: (id) => callApi(`remove sandbox ${id}`, async () => SdkSandbox.kill(id, await options())),
    renew: (id, leaseMs) =>
      callApi(`renew the lease of sandbox ${id}`, async () => {
        const renewed = SdkSandbox.setTimeout(id, leaseMs, await options()).then(() => true);
        return (await renewed.catch(orIfMissing)) ?? false;
      }),
    hasTemplate: (name) => callApi(`look for template ${name}`, async () => Template.exists(name, await options())),
    buildOf: (template) =>
      callApi(`look at template ${template}`, async () => {
        const tags = await Template.getTags(template, await options()).catch(orIfMissing);
        const newest = (tags ?? []).toSorted((a, b) => b.createdAt.getTime() - a.createdAt.getTime());
        return (newest.find(({ tag }) => tag === 'default') ?? newest[0])?.buildId;
      }),
    probe: () =>
      callApi('reach the E2B server', async () => {
        await SdkSandbox.list({ ...(await options()), limit: 1 })
          .nextItems()
          .catch(orWrongAddress);
      }),
  };
}

function orIfMissing(error: unknown): undefined {
  if (error instanceof SandboxNotFoundError || statusOf(error) === 404) return undefined;
  throw error;
}
