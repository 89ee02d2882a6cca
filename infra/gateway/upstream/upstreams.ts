import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const about = z.strictObject({
  /** The API's base address, without `/chat/completions`: `https://api.example.com/v1`. */
  url: z
    .url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' })
    .refine(hasNoPassword, { error: 'expected an address without a password; apiKeyFrom names where the key is' }),
  model: z.string({ error: 'expected the name of the model at its server' }).min(1),
  /** The variable in the stack's environment that holds the key; the file itself never holds it. */
  apiKeyFrom: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'expected the name of a variable in the environment' })
    .optional(),
  /** The context length in tokens, which tells agents when to compact their conversation. */
  contextLength: z.int().positive().optional(),
  /** The field for the reply's length: newer OpenAI models accept only the second, some servers only the first. */
  maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  /** Whether later requests send the model's reasoning back: some models need it, some reject it. */
  returnsReasoning: z.boolean().default(false),
});
const file = z.record(z.string(), about);

/** An external model behind an OpenAI-compatible endpoint, with all that a request to it needs. */
export interface UpstreamModel extends Omit<z.output<typeof about>, 'apiKeyFrom'> {
  readonly name: string;
  /** A secret, which is sent in one header and used nowhere else. */
  readonly apiKey: string | null;
}

export interface Upstreams {
  /** Returns a model by its name. Throws TemperFailure UnknownUpstream, which lists the known names, or InvalidInput, which names file and field. */
  find(name: string): Promise<UpstreamModel>;
}

/**
 * Provides the models that the operator's file names. The file is read at each call, so that a new model needs no restart.
 * `environment` holds the API keys.
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
    `${path}: ${name}.apiKeyFrom: expected ${variable} in the environment of the stack, got nothing; set it where \`temper up\` or the gateway starts, and restart that`,
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
    // The parser's own message would quote the file, which may hold secrets by mistake.
    throw invalid(
      `${path}: expected a JSON object of models by their names, got text that is not valid JSON; correct the file`,
    );
  }
}

/** Addresses are printed, secrets are not. */
function hasNoPassword(url: string): boolean {
  if (!URL.canParse(url)) return true; // z.url has reported it already
  const { username, password } = new URL(url);
  return username === '' && password === '';
}

const invalid = (message: string): TemperFailure => new TemperFailure('InvalidInput', message);
