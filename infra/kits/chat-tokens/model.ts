import type { Template } from '@huggingface/jinja';
import type { Family } from './families.ts';
import type { SystemForm } from './system-messages.ts';
import type { TokenTable } from './token-table.ts';

/** A loaded model directory, ready to turn conversations into token ids and sampled ids into replies. */
export interface Model {
  /** The name of the directory, which `GET /v1/models` lists. */
  readonly name: string;
  readonly tokens: TokenTable;
  readonly family: Family;
  readonly template: Template;
  /** The template's constants: `bos_token`, `eos_token`, … */
  readonly constants: Readonly<Record<string, string>>;
  /** The token ids that end sampling. */
  readonly stopTokenIds: readonly number[];
  readonly argumentsForm: ArgumentsForm;
  /** Whether the template prints several calls of one reply. Some print the first one alone, or refuse such a reply. */
  readonly severalCalls: boolean;
  readonly takes: Takes;
  readonly systemForm: SystemForm;
}

/** The form in which a template expects a call's arguments: an object, JSON text, or none since it prints no calls. */
export type ArgumentsForm = 'object' | 'text' | 'none';

/** The values that a template prints. At others it fails, or leaves them out. */
export interface Takes {
  /** Arguments that are no JSON object, as text. */
  readonly anyArguments: boolean;
  readonly nullArguments: boolean;
  readonly nullInTools: boolean;
  readonly toolsWithoutDescription: boolean;
}
