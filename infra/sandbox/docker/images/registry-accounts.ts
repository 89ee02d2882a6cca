import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuthConfig } from 'dockerode';
import { z } from 'zod';
import { errorCode } from '../../failure.ts';

/** The account that an image is pulled with; empty if there is no account for its registry. */
export interface RegistryAccount {
  /** A secret, which is passed to the daemon and nowhere else. */
  readonly auth?: AuthConfig;
  /** The reason why no account could be read. Most images need no account; if this one does, the reason explains the failed pull. */
  readonly problem?: string;
}

/** Finds the account to pull an image with. */
export type RegistryAccounts = (image: string, signal: AbortSignal) => Promise<RegistryAccount>;

const noAccount: RegistryAccount = {};
/** Pulls every image without an account. */
export const noRegistryAccounts: RegistryAccounts = async () => noAccount;

export interface RegistryAccountsOptions {
  /** The directory of config.json; it need not exist. */
  readonly directory: string;
  /** Environment of the credential helpers, with PATH. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const hub = 'https://index.docker.io/v1/';
const helperMs = 30_000;
const helperBytes = 256 * 1024;
const notFound = /credentials not found/i;

const entry = z.looseObject({ auth: z.string().optional(), identitytoken: z.string().optional() });
const configFile = z.looseObject({
  auths: z.record(z.string(), entry).default({}),
  credHelpers: z.record(z.string(), z.string()).default({}),
  credsStore: z.string().optional(),
});
const helperAnswer = z.looseObject({ Username: z.string(), Secret: z.string() });

/**
 * Reads accounts as `docker login` stored them: in Docker's own config.json, or through its credential helpers. They are read at
 * each pull, since accounts are added and tokens expire.
 */
export function createRegistryAccounts({ directory, env }: RegistryAccountsOptions): RegistryAccounts {
  const path = join(directory, 'config.json');
  return async (image, signal) => {
    const registry = registryOf(image);
    const config = await readConfigFile(path);
    if (config === null) return { problem: `${path} is not a valid Docker configuration` };
    const helper = config.credHelpers[registry] ?? config.credsStore;
    if (helper !== undefined && helper !== '') return askHelper(helper, registry, env, signal);
    const found = Object.entries(config.auths).find(([key]) => hostOf(key) === hostOf(registry))?.[1];
    return found === undefined ? noAccount : accountOf(found, registry, path);
  };
}

/** The registry of an image, as Docker reads its name: the part before the first slash is a host if it looks like one. */
export function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost && hostOf(first) !== 'docker.io' ? first : hub;
}

/** The host of a registry, whose entry may have a scheme and a path. */
const hostOf = (registry: string): string => {
  const [host = ''] = registry.replace(/^https?:\/\//, '').split('/');
  return host.replace(/^index\.docker\.io$/, 'docker.io');
};

/** Reads the configuration; null if it is invalid. The error is dropped because it may quote a secret. */
async function readConfigFile(path: string): Promise<z.infer<typeof configFile> | null> {
  try {
    return configFile.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? configFile.parse({}) : null;
  }
}

function accountOf({ auth, identitytoken }: z.infer<typeof entry>, registry: string, path: string): RegistryAccount {
  const text = Buffer.from(auth ?? '', 'base64')
    .toString('utf8')
    .replace(/\0+$/, '');
  const colon = text.indexOf(':');
  if (identitytoken) return asAccount(text.slice(0, Math.max(0, colon)), '', registry, identitytoken);
  if (text === '') return noAccount;
  if (colon < 1) return { problem: `${path} has an account for ${registry} without name and password` };
  return asAccount(text.slice(0, colon), text.slice(colon + 1), registry);
}

async function askHelper(
  name: string,
  registry: string,
  env: RegistryAccountsOptions['env'],
  signal: AbortSignal,
): Promise<RegistryAccount> {
  const program = `docker-credential-${name}`;
  const { code, stdout } = await runHelper(program, registry, env, signal);
  if (code !== 0 && notFound.test(stdout)) return noAccount;
  const answer = code === 0 ? helperAnswer.safeParse(parseJson(stdout)) : null;
  if (!answer?.success) {
    const got = code === 0 ? 'something else' : `exit code ${code}`;
    return { problem: `expected ${program} to give an account for ${registry}, got ${got}` };
  }
  const { Username, Secret } = answer.data;
  return Username === '<token>' ? asAccount('', '', registry, Secret) : asAccount(Username, Secret, registry);
}

/** Runs a credential helper. Its output is a secret, so no error includes it. */
function runHelper(
  program: string,
  registry: string,
  env: RegistryAccountsOptions['env'],
  signal: AbortSignal,
): Promise<{ readonly code: number | string; readonly stdout: string }> {
  return new Promise((resolve) => {
    const options = { env, signal, timeout: helperMs, maxBuffer: helperBytes };
    const child = execFile(program, ['get'], options, (error, stdout) =>
      resolve({ code: error === null ? 0 : (error.code ?? 'none'), stdout }),
    );
    // A helper that ends without reading its input is judged by its exit code.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(registry);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const asAccount = (username: string, password: string, registry: string, identitytoken?: string): RegistryAccount => ({
  auth: {
    username,
    password,
    serveraddress: registry,
    ...(identitytoken !== undefined && { identitytoken }),
  },
});
