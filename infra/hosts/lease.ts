import { readFileSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { tryLock, withLock } from '../process/file-lock.ts';
import { replaceFile, storeFailure } from '../store/files.ts';
import { type FoundHost, type HostFacts, type HostRecord, type Hosts, hostRecord } from '../store/hosts.ts';
import { untilWritten } from '../store/until-written.ts';
import { bootClock } from './boot-clock.ts';
import { createRenewals, type Renewals } from './renewals.ts';
import { firstToken, tokenOf } from './token.ts';

/** The lease of a host as its processes share it, in a file of the home. */
const leaseFile = z.object({
  host: z.string(),
  /** The record as this host wrote it last, and the version that it has in the store. */
  record: hostRecord,
  version: z.string(),
  /** The boot of the machine, and the time in it at which the last renewal began. */
  boot: z.string(),
  renewedMs: z.number(),
  /** Whether the host was declared lost, so that it may never act again under this token. */
  fenced: z.boolean(),
});
type LeaseFile = Readonly<z.output<typeof leaseFile>>;

/** The state of a lease. Only a valid one allows its host to act; one that is not may be renewed, unless it is fenced. */
export interface LeaseState {
  readonly state: 'valid' | 'expired' | 'fenced' | 'none';
  /** The fencing token of the host; null if no host worker has claimed a name yet. */
  readonly token: string | null;
}

/**
 * The right of a host's processes to act: to answer turns, write journals and change sandboxes. It lasts for a time after the
 * last renewal of the host's record, by this machine's own clock. So a host that is cut off from the store has stopped by itself
 * before any other process declares it lost.
 */
export interface Lease {
  now(): LeaseState;
  /** Returns whether the holder of a token may act. What was made before there were tokens has none. */
  of(token: string | undefined): 'valid' | 'expired' | 'fenced';
  /** Resolves when the lease is valid, and looks again and again until then. Rejects with HostFenced once it is fenced. */
  valid(signal?: AbortSignal): Promise<void>;
  /** The record as this host knows it; null before a claim. */
  readonly record: HostRecord | null;
}

export interface HeldLease extends Lease {
  /** Whether the last renewal of a record came from this home. A copy of the home makes renewals of its own. */
  wrote(record: HostRecord): Promise<boolean>;
  /**
   * Writes the record by which this home claims the name of its host, and begins the lease. Returns it as it was written, or null
   * if another process has changed the one that was found.
   */
  claim(record: Omit<HostRecord, 'renewal'>, found: FoundHost | null, signal: AbortSignal): Promise<HostRecord | null>;
  /**
   * Renews the host's record if the last renewal began that long ago, unless another process of the host does it right now.
   * Throws TemperFailure StoreUnavailable or DiskFull if it cannot, and InvalidInput if a copy of this home renews it.
   */
  renew(afterMs: number, facts?: HostFacts): Promise<void>;
}

/** The lease of a part that runs by itself, outside of any host. */
export const endlessLease: Lease = {
  now: () => ({ state: 'valid', token: null }),
  of: () => 'valid',
  valid: async () => undefined,
  record: null,
};

/** The interval at which a process reads the file again. */
const readEveryMs = 250;

export interface LeaseOptions {
  readonly path: string;
  /** The name of the host. The lease of another name in that file counts as none. */
  readonly host: string;
  readonly hosts: Pick<Hosts, 'find' | 'replace'>;
  /** Whether the store is a directory of this machine, so that a full disk is no proof that the host is cut off. */
  readonly storeIsLocal: boolean;
}

export const createLease = (options: LeaseOptions): HeldLease => new HostLease(options);

class HostLease implements HeldLease {
  readonly #options: LeaseOptions;
  readonly #renewals: Renewals;
  readonly #lock: string;
  #file: LeaseFile | null = null;
  #fileTime = 0n;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #bootMs = 0;
  /** The end of the lease by this process's own last renewal, which a full disk may have kept out of the file. */
  #extendedMs = Number.NEGATIVE_INFINITY;
  /** The token that this process's last renewal found to be lost, which a full disk may have kept out of the file, too. */
  #fenced: string | null = null;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#renewals = createRenewals(`${options.path}.renewal`, options.host);
    this.#lock = `${options.path}.lock`;
  }

  get record(): HostRecord | null {
    return this.#look()?.record ?? null;
  }

  now(): LeaseState {
    const file = this.#look();
    if (file === null) return { state: 'none', token: null };
    const token = tokenOf(file.host, file.record.generation);
    if (file.fenced || token === this.#fenced) return { state: 'fenced', token };
    return { state: this.#isValid(file) ? 'valid' : 'expired', token };
  }

  of(token: string | undefined): 'valid' | 'expired' | 'fenced' {
    const { state, token: held } = this.now();
    // A host that has just been started on an old home may still claim what it held.
    if (state === 'none') return 'expired';
    return (token ?? firstToken(this.#options.host)) === held ? state : 'fenced';
  }

  async valid(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const { state, token } = this.now();
      if (state === 'valid') return;
      if (state === 'fenced') throw fenced(token);
      await sleep(readEveryMs, undefined, signal === undefined ? {} : { signal });
    }
  }

  wrote({ renewal }: HostRecord): Promise<boolean> {
    return this.#renewals.isOwn(renewal, this.#read()?.record.renewal);
  }

  claim(wanted: Omit<HostRecord, 'renewal'>, found: FoundHost | null, signal: AbortSignal): Promise<HostRecord | null> {
    const { host, hosts } = this.#options;
    const write = async (): Promise<HostRecord | null> => {
      const record = { ...wanted, renewal: await this.#renewals.begin(this.#read()?.record.renewal) };
      const renewedMs = bootClock.nowMs();
      const version = await hosts.replace(host, record, found?.version ?? null);
      if (version === null) return null;
      await this.#write({ host, record, version, boot: bootClock.boot, renewedMs, fenced: false });
      return record;
    };
    return withLock(this.#lock, write, { signal });
  }

  async renew(afterMs: number, facts?: HostFacts): Promise<void> {
    if (!this.#isDue(afterMs)) return;
    const beganMs = bootClock.nowMs();
    try {
      await this.#renewLocked(afterMs, facts);
    } catch (error) {
      const failure = storeFailure(this.#options.path, error);
      if (failure.type !== 'DiskFull' || !this.#options.storeIsLocal) throw failure;
      this.#extendedMs = beganMs + (this.record?.leaseMs ?? 0);
    }
  }

  async #renewLocked(afterMs: number, facts: HostFacts | undefined): Promise<void> {
    const lock = await tryLock(this.#lock);
    if ('holder' in lock) return;
    try {
      const file = this.#read();
      if (file === null || !this.#isDue(afterMs)) return;
      const renewal = await this.#renewals.begin(file.record.renewal);
      const renewedMs = bootClock.nowMs();
      const renewed = await this.#replaceRecord(file, { ...facts, renewal });
      this.#fenced = renewed === null ? tokenOf(file.host, file.record.generation) : null;
      if (renewed !== null) this.#extendedMs = renewedMs + file.record.leaseMs;
      await this.#write({ ...file, ...renewed, boot: bootClock.boot, renewedMs, fenced: renewed === null });
    } finally {
      await lock.release();
    }
  }

  /**
   * Writes the record again. Another version is that of an operator's order, which is kept, or proves that the host is lost:
   * returns null then.
   */
  #replaceRecord(
    { host, record: known, version: knownVersion }: LeaseFile,
    facts: Partial<HostFacts> & Pick<HostRecord, 'renewal'>,
  ): Promise<FoundHost | null> {
    const { hosts } = this.#options;
    let before: { readonly record: HostRecord; readonly version: string | null } = {
      record: known,
      version: knownVersion,
    };
    return untilWritten(`the record of host ${host}`, async () => {
      const record = { ...known, ...facts, draining: before.record.draining, renewedAt: new Date().toISOString() };
      const version = await hosts.replace(host, record, before.version);
      if (version !== null) return { record, version };
      const found = await hosts.find(host);
      // An operator removed the record by hand, which is no proof.
      before = found ?? { record: known, version: null };
      const { generation, machine, lost } = before.record;
      if (lost !== null || generation !== known.generation || machine !== known.machine) return null;
      if (!(await this.wrote(before.record))) throw renewedByCopy(host, before.record);
      return undefined;
    });
  }

  async #write(file: LeaseFile): Promise<void> {
    await replaceFile(this.#options.path, `${JSON.stringify(file)}\n`, 0o600);
    this.#forgetFile();
  }

  #isDue(afterMs: number): boolean {
    const file = this.#look();
    if (file === null || file.fenced) return false;
    return file.boot !== bootClock.boot || Math.abs(bootClock.nowMs() - file.renewedMs) >= afterMs;
  }

  #isValid({ boot, renewedMs, record }: LeaseFile): boolean {
    const now = this.#bootMs + (performance.now() - this.#lookedAt);
    if (now < this.#extendedMs) return true;
    return boot === bootClock.boot && now >= renewedMs && now - renewedMs < record.leaseMs;
  }

  #forgetFile(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#fileTime = 0n;
  }

  /** Returns the file as it is now. */
  #read(): LeaseFile | null {
    this.#forgetFile();
    return this.#look();
  }

  /** Returns the file as it was a moment ago at most: every turn asks for it. */
  #look(): LeaseFile | null {
    if (performance.now() - this.#lookedAt < readEveryMs) return this.#file;
    this.#lookedAt = performance.now();
    this.#bootMs = bootClock.nowMs();
    const time = timeOf(this.#options.path);
    if (time !== this.#fileTime) this.#file = time === null ? null : readLease(this.#options);
    this.#fileTime = time ?? 0n;
    return this.#file;
  }
}

function timeOf(path: string): bigint | null {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.mtimeNs ?? null;
}

function readLease({ path, host }: LeaseOptions): LeaseFile | null {
  try {
    const file = leaseFile.parse(JSON.parse(readFileSync(path, 'utf8')));
    return file.host === host ? file : null;
  } catch (error) {
    const message = `cannot read ${path}: ${String(error)}; remove it and restart the host`;
    throw new TemperFailure('StoreUnavailable', message, { cause: error });
  }
}

function fenced(token: string | null): TemperFailure {
  return new TemperFailure(
    'HostFenced',
    `this host was declared lost as ${token}; what it held is void, and it starts afresh under the next generation`,
  );
}

function renewedByCopy(host: string, { renewedAt }: HostRecord): TemperFailure {
  return new TemperFailure(
    'InvalidInput',
    `a copy of this home renewed the record of host ${host} at ${renewedAt}, so this home cannot renew it; ` +
      'choose another TEMPER_HOST, or stop the machine with the copy and start this one again',
  );
}
