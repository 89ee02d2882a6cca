import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const about = z.strictObject({
  /** Where chat completions are, without that last part: `https://api.example.com/v1`. */
  url: z
    .url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' })
    .refine(hasNoPassword, { error: 'expected an address without a password; apiKeyFrom names where the key is' }),
  model: z.string({ error: 'expected the name of the model at its server' }).min(1),
  /** Variable in the environment of the stack that holds the key; the file itself never does. */
  apiKeyFrom: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'expected the name of a variable in the environment' })
    .optional(),
  /** In tokens; agents compact their conversation by it. */
  contextLength: z.int().positive().optional(),
  /** Newer models of OpenAI know only the one, some servers only the other. */
  maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  /** Gives the model's reasoning back to it with later requests: some want it, some refuse it. */
  returnsReasoning: z.boolean().default(false),
});
const file = z.record(z.string(), about);

/** A model of others behind an OpenAI-compatible endpoint, with what it takes to ask it. */
export interface UpstreamModel extends Omit<z.output<typeof about>, 'apiKeyFrom'> {
  readonly name: string;
  /** A secret: goes into the one header, and nowhere else. */
  readonly apiKey: string | null;
}

export interface Upstreams {
  /** Throws TemperFailure: UnknownUpstream that lists those there are, InvalidInput that names file and field. */
  find(name: string): Promise<UpstreamModel>;
}

/**
 * The models that the operator's file names. It is read whenever somebody asks, so that a new one needs no restart.
 * `environment` holds the keys.
 */
export function createUpstreams(path: string, environment: Readonly<Record<string, string | undefined>>): Upstreams {
  return {
    async find(name) {
      const known = await readUpstreams(path);
      const found = known[name];
      if (found === undefined || !Object.hasOwn(known, name)) {
        const names = Object.keys(known).join(', ') || 'none';
        throw new TemperFailure(
          'UnknownUpstream',
          `upstream: expected one that ${path} names (${names}), got ${name}; add it to that file`,
        );
      }
      const { apiKeyFrom, ...rest } = found;
      return { ...rest, name, apiKey: apiKeyFrom === undefined ? null : keyOf(path, name, apiKeyFrom, environment) };
    },
  };
}

function keyOf(
  path: string,
  name: string,
  variable: string,
  environment: Readonly<Record<string, string | undefined>>,
) {
  const key = environment[variable];
  if (key !== undefined && key.trim() !== '') return key.trim();
  throw invalid(
    `${path}: ${name}.apiKeyFrom: expected ${variable} in the environment of the stack, got nothing; set it where \`temper up\` or the gateway starts, and start that again`,
  );
}

async function readUpstreams(path: string): Promise<z.output<typeof file>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw invalid(`${path}: expected a file that can be read: ${error.message}`);
  });
  const parsed = file.safeParse(jsonOf(path, text));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => `${at.join('.') || 'file'}: ${message}`);
  throw invalid(`${path}: ${problems.join('; ')}`);
}

function jsonOf(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own words quote the file.
    throw invalid(
      `${path}: expected a JSON object of models by their names, got text that is no JSON; correct the file`,
    );
  }
}

/** Addresses are printed, secrets are not. */
function hasNoPassword(url: string): boolean {
  if (!URL.canParse(url)) return true; // said already
  const { username, password } = new URL(url);
  return username === '' && password === '';
}

const invalid = (message: string): TemperFailure => new TemperFailure('InvalidInput', message);
