import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { stackFormat } from '../workflows/contracts/format.ts';
import { isRecord } from './is-record.ts';
import type { Paths } from './paths.ts';
import { createOnce } from './store/files.ts';
import type { Objects } from './store/objects.ts';
import { untilWritten } from './store/until-written.ts';

/**
 * Keys that the agents' secrets are derived from, the newest first. New secrets are derived from the first, and those of every
 * key are accepted, so that a rotation ends no session. They are never in workflow history.
 */
export type StackKeys = readonly [Buffer, ...Buffer[]];

/** The stack of a store or of a home, and the format of what it holds. */
const ownership = z.object({ id: z.uuid(), format: z.int() });

/** The record of a stack in its store. The fingerprints of its keys prove that a host has one of them. */
const identity = ownership.extend({
  keys: z.array(z.string()).optional(),
  /** The id of the Temporal namespace that the stack's workflows are in. */
  namespace: z.string().optional(),
});
export type Identity = Readonly<z.output<typeof identity>>;

const identityKey = 'stack.json';

/**
 * Returns the id of the stack that the store belongs to: the label of every sandbox of the stack. The first process that needs
 * it creates it. Refuses a home of another stack, whose sandboxes would be orphaned, and a store or a home of another format.
 */
export async function openStackId({ stackFile }: Pick<Paths, 'stackFile'>, objects: Objects): Promise<string> {
  const ofHome = await readHome(stackFile);
  const { id } = await changeIdentity(objects, (found) => found ?? { id: ofHome ?? randomUUID(), format: stackFormat });
  if (ofHome !== null && ofHome !== id) throw otherStack({ id, ofHome, stackFile }, objects);
  await createOnce(stackFile, `${JSON.stringify({ id, format: stackFormat })}\n`, 0o644);
  return id;
}

const otherStack = (
  { id, ofHome, stackFile }: { readonly id: string; readonly ofHome: string; readonly stackFile: string },
  { location }: Objects,
): Error =>
  new Error(
    `the store ${location} belongs to stack ${id}, and ${stackFile} says that this home is of stack ${ofHome}; ` +
      'give each stack a prefix of its own in TEMPER_STORE, or this host a home of its own in TEMPER_HOME',
  );

/** The origins of a stack's keys. */
export interface KeySource {
  readonly paths: Pick<Paths, 'stackKey'>;
  /** Reads the keys that the settings name; null: those of the home. */
  readonly stackKeys: (() => Promise<StackKeys>) | null;
}

/**
 * Reads the keys of this host, and creates the first one of a stack. Refuses a host that has none of the stack's keys. A new
 * key beside a known one becomes a key of the stack. Returns the keys as they hold for this stack alone.
 */
export async function openStackKeys({ paths, stackKeys }: KeySource, objects: Objects): Promise<StackKeys> {
  const keys = stackKeys === null ? await keysOfHome(paths.stackKey, objects) : await stackKeys();
  const own = keys.map(fingerprint);
  const { id } = await changeIdentity(objects, (found) => {
    if (found === null) throw new Error(`${objects.location} lost its ${identityKey}; restore it from a backup`);
    const known = found.keys ?? own;
    if (!own.some((one) => known.includes(one))) throw new Error(strangeKey(found, objects));
    return { ...found, keys: [...new Set([...own.slice(0, 1), ...known])] };
  });
  return boundTo(id, keys);
}

/** Binds keys to a stack, so that no secret of another stack that was given the same key opens a session here. */
function boundTo(id: string, keys: StackKeys): StackKeys {
  const [first, ...others] = keys;
  const bind = (key: Buffer): Buffer => createHmac('sha256', key).update('key of stack ').update(id).digest();
  return [bind(first), ...others.map(bind)];
}

/**
 * Makes the keys of this host the only ones of the stack: after the loss of its key, or so that one that was replaced is refused
 * from then on. A home without a key gets one. Refuses a home of another stack. Returns the id of the stack.
 */
export async function replaceStackKeys(
  { paths, stackKeys }: KeySource & { readonly paths: Pick<Paths, 'stackFile'> },
  objects: Objects,
): Promise<string> {
  const stack = await identityOf(objects);
  if (stack === null) throw new Error(`${objects.location} is no stack's store; correct TEMPER_STORE or the home`);
  const { id } = stack;
  const { stackFile } = paths;
  const ofHome = await readHome(stackFile);
  if (ofHome !== null && ofHome !== id) throw otherStack({ id, ofHome, stackFile }, objects);
  const keys = stackKeys === null ? await createKeyOfHome(paths.stackKey) : await stackKeys();
  await changeIdentity(objects, (found) => ({ ...(found ?? stack), keys: keys.map(fingerprint) }));
  return id;
}

/**
 * Adds the fingerprints of a stack's keys to a copy of its store. Without them the copy would accept the first host with any key.
 * Both stores must have an identity.
 */
export async function copyKeyFingerprints(from: Objects, to: Objects): Promise<void> {
  const { found } = await readIdentity(from);
  const copied = found?.keys ?? [];
  if (copied.length === 0) return;
  await changeIdentity(to, (there) => {
    if (there === null) throw new Error(`${to.location} lost its ${identityKey}; copy again`);
    return { ...there, keys: [...new Set([...(there.keys ?? []), ...copied])] };
  });
}

/** Parses keys in hexadecimal digits. An error names their origin, and never quotes them. */
export function parseKeys(text: string, origin: string): StackKeys {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  const [first, ...others] = words.map((word) => {
    if (/^([0-9a-fA-F]{2}){32,}$/.test(word)) return Buffer.from(word, 'hex');
    throw new Error(
      `${origin}: expected keys of at least 64 hexadecimal digits, got a word of ${word.length} characters; ` +
        'make one with `openssl rand -hex 32`',
    );
  });
  if (first !== undefined) return [first, ...others];
  throw new Error(`${origin}: expected at least one key, got none; make one with \`openssl rand -hex 32\``);
}

/**
 * Replaces the identity by what `change` makes of it, and returns it. Starts again with the newest one when another process
 * changed it meanwhile.
 */
export function changeIdentity(objects: Objects, change: (found: Identity | null) => Identity): Promise<Identity> {
  return untilWritten(`${objects.location}/${identityKey}`, async () => {
    const { found, version } = await readIdentity(objects);
    const changed = change(found);
    if (JSON.stringify(changed) === JSON.stringify(found)) return changed;
    const bytes = new TextEncoder().encode(`${JSON.stringify(changed)}\n`);
    return (await objects.replace(identityKey, bytes, version)) === null ? undefined : changed;
  });
}

/** Returns the identity of the stack that a store belongs to; null before the first process of a stack has opened it. */
export async function identityOf(objects: Objects): Promise<Identity | null> {
  return (await readIdentity(objects)).found;
}

async function readIdentity(objects: Objects): Promise<{ found: Identity | null; version: string | null }> {
  const stored = await objects.get(identityKey);
  if (stored === null) return { found: null, version: null };
  const text = new TextDecoder().decode(stored.bytes);
  return { found: parsed(identity, text, `${objects.location}/${identityKey}`), version: stored.version };
}

/** Parses what a store or a home says of its stack. Refuses one of another format, whatever else differs in it. */
function parsed<Found>(schema: z.ZodType<Found>, text: string, where: string): Found {
  const value = parseJson(text);
  if (isRecord(value) && value.id !== undefined && value.format !== stackFormat) throw otherFormat(value.format, where);
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const got = JSON.stringify(text.slice(0, 100));
  throw new Error(`${where}: expected the identity of a stack, got ${got}`, { cause: error });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const otherFormat = (format: unknown, where: string): Error =>
  new Error(
    `${where}: expected format ${stackFormat}, got ${format === undefined ? 'none' : JSON.stringify(format)}: another ` +
      'version of temper wrote this stack, and nothing converts it. Run that version, or begin a new stack: name another ' +
      'home in TEMPER_HOME, and another place in TEMPER_STORE if it is set',
  );

const strangeKey = ({ id }: Identity, { location }: Objects): string =>
  `this host has no key of stack ${id} in ${location}; give all hosts of a stack the same key by TEMPER_STACK_KEY_FILE or ` +
  'TEMPER_STACK_KEY, or name a store of its own in TEMPER_STORE. If the key is lost, run `temper store replace-key`';

const fingerprint = (key: Buffer): string =>
  createHmac('sha256', key).update('fingerprint of a stack key').digest('hex').slice(0, 32);

/** Reads the keys of the home. Creates one only for a stack without keys: another host's key cannot be guessed. */
async function keysOfHome(path: string, objects: Objects): Promise<StackKeys> {
  const kept = await readIfThere(path);
  if (kept !== null) return parseKeys(kept, path);
  const { found } = await readIdentity(objects);
  if (found?.keys !== undefined) {
    throw new Error(
      `expected a key of stack ${found.id} in TEMPER_STACK_KEY_FILE, TEMPER_STACK_KEY or ${path}, got none; ` +
        'copy stack.key from the home of another host of the stack. If the key is lost, run `temper store replace-key`',
    );
  }
  return await createKeyOfHome(path);
}

/** Creates the key of a home, unless there is one. */
async function createKeyOfHome(path: string): Promise<StackKeys> {
  await createOnce(path, randomBytes(32).toString('hex'), 0o600);
  return parseKeys(await readFile(path, 'utf8'), path);
}

async function readHome(path: string): Promise<string | null> {
  const text = await readIfThere(path);
  return text === null ? null : parsed(ownership, text, path).id;
}

async function readIfThere(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
