import { z } from 'zod';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { readOperatorFile, secretFrom, variableName } from '../../operator-file.ts';

const about = z.strictObject({
  /** The API's base address, without `/chat/completions`: `https://api.example.com/v1`. */
  url: z
    .url({ protocol: /^https?$/, error: 'expected an address that begins with http:// or https://' })
    .refine(hasNoPassword, { error: 'expected an address without a password; apiKeyFrom names where the key is' }),
  model: z.string({ error: 'expected the name of the model at its server' }).min(1),
  /** The variable in the stack's environment that holds the key; the file itself never holds it. */
  apiKeyFrom: variableName.optional(),
  /** The context length in tokens, which tells agents when to compact their conversation. */
  contextLength: z.int().positive().optional(),
  /** The field for the reply's length: newer OpenAI models accept only the second, some servers only the first. */
  maxTokensField: z.enum(['max_tokens', 'max_completion_tokens']).default('max_tokens'),
  /** Whether later requests send the model's reasoning back: some models need it, some reject it. */
  returnsReasoning: z.boolean().default(false),
  /** Whether the model reads images. Others get a note in the place of each. */
  readsImages: z.boolean().default(false),
  /** Whether each request names its session and its turn in headers, for a server that answers each session by itself. */
  namesSession: z.boolean().default(false),
});
const file = z.record(z.string(), about);

/** An external model behind an OpenAI-compatible endpoint, with all that a request to it needs. */
export interface UpstreamModel extends Omit<z.output<typeof about>, 'apiKeyFrom'> {
  readonly name: string;
  /** A secret, which is sent in one header and used nowhere else. */
  readonly apiKey: string | null;
}

export interface Upstreams {
  /**
   * Returns a model by its name. Throws TemperFailure UnknownUpstream, which lists the known names, or InvalidInput,
   * which names file and field.
   */
  find(name: string): Promise<UpstreamModel>;
}

/**
 * Provides the models that the operator's file names. The file is read at each call, so that a new model needs no restart.
 * `environment` holds the API keys.
 */
export function createUpstreams(path: string, environment: Readonly<Record<string, string | undefined>>): Upstreams {
  return {
    async find(name) {
      const known = await readOperatorFile(path, 'a JSON object of models by their names', file);
      const found = known[name];
      if (found === undefined || !Object.hasOwn(known, name)) {
        const names = Object.keys(known).join(', ') || 'none';
        throw new TemperFailure(
          'UnknownUpstream',
          `upstream: expected one that ${path} names (${names}), got ${name}; add it to that file`,
        );
      }
      const { apiKeyFrom, ...rest } = found;
      const at = `${path}: ${name}.apiKeyFrom`;
      return { ...rest, name, apiKey: apiKeyFrom === undefined ? null : secretFrom(environment, apiKeyFrom, at) };
    },
  };
}

/** Addresses are printed, secrets are not. */
function hasNoPassword(url: string): boolean {
  if (!URL.canParse(url)) return true; // z.url has reported it already
  const { username, password } = new URL(url);
  return username === '' && password === '';
}
