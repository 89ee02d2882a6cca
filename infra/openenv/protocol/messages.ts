import { z } from 'zod';

const metadata = z.record(z.string(), z.unknown()).optional().describe('Ignored.');

/** An action of a client: a shell command, a call of any tool that the episode offers, or the end of the work. */
export const action = z.union(
  [
    z.strictObject({
      command: z.string().min(1).describe('A shell command, run in the workdir of the task.'),
      metadata,
    }),
    z.strictObject({ submit: z.literal(true).describe('Hands the work in, which ends the episode.'), metadata }),
    z.strictObject({
      type: z.literal('call_tool'),
      tool_name: z.string().min(1).describe('The name of a tool, as list_tools names it.'),
      arguments: z.record(z.string(), z.unknown()).default({}).describe('The arguments of the tool.'),
      metadata,
    }),
    z.strictObject({ type: z.literal('list_tools'), metadata }),
  ],
  {
    error:
      'expected an action: {"command": "…"}, {"submit": true}, {"type": "call_tool", "tool_name": "…", "arguments": {…}} or {"type": "list_tools"}',
  },
);
export type Action = z.output<typeof action>;

export const resetData = z.strictObject(
  {
    task_id: z.string().min(1).max(2000).optional().describe('The id or the address of a task of the set.'),
    seed: z.int().min(0).nullish().describe('Chooses a task by its number, where task_id is absent.'),
    episode_id: z
      .string()
      .min(1)
      .max(255)
      .nullish()
      .describe('A name for the episode. Default: the workflow id of its rollout.'),
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `expected task_id, seed or episode_id, got ${issue.keys.join(', ')}`
        : undefined,
  },
);
export type ResetData = z.output<typeof resetData>;

export const jsonRpcRequest = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
  id: z.union([z.string(), z.number()]).nullish(),
});

/** A message of a client. */
const clientMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reset'), data: resetData.default({}) }),
  z.object({ type: z.literal('step'), data: action }),
  z.object({ type: z.literal('state') }),
  z.object({ type: z.literal('close') }),
  z.object({ type: z.literal('mcp'), data: z.unknown() }),
]);
export type ClientMessage = z.output<typeof clientMessage>;
const messageTypes: readonly string[] = ['reset', 'step', 'state', 'close', 'mcp'];

/** The error codes of the protocol that this server uses. */
export type ErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'SESSION_ERROR';

/** An error that is reported to a client. */
export class OpenEnvError extends Error {
  override readonly name: string = 'OpenEnvError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** The end of an episode: how its rollout ended. */
const ended = {
  outcome: z.string().nullable().optional().describe('Once the episode is over: the outcome of the rollout.'),
  stop: z.string().nullable().optional().describe('Once it is over: the stop reason of the agent.'),
  failure: z
    .object({ type: z.string(), message: z.string() })
    .nullable()
    .optional()
    .describe('Once it is over: why it has no reward.'),
};

export const observation = z.object({
  output: z.string().optional().describe('The output of a command.'),
  instruction: z.string().optional().describe('After a reset: the instruction of the task.'),
  task_id: z.string().optional().describe('After a reset: the id of the task.'),
  metadata: z.record(z.string(), z.unknown()).optional().describe('After a reset: instruction, task_id and rollout.'),
  tools: z
    .array(z.object({ name: z.string(), description: z.string(), input_schema: z.record(z.string(), z.unknown()) }))
    .optional()
    .describe('After list_tools: the tools of the episode.'),
  tool_name: z.string().optional().describe('After call_tool: the name of the tool.'),
  result: z.string().optional().describe('After call_tool: the text that the tool returned.'),
  error: z
    .object({ error_type: z.string(), message: z.string() })
    .nullable()
    .optional()
    .describe('After call_tool: why the tool did not run.'),
  restarted: z.literal(true).optional().describe('The sandbox was lost, and the episode begins again in a fresh one.'),
  ...ended,
});
export type Observation = z.output<typeof observation>;

/** The answer to a reset or a step. */
export interface StepResult {
  readonly observation: Observation;
  readonly reward: number | null;
  readonly done: boolean;
}

export const state = z.object({
  episode_id: z.string().nullable(),
  step_count: z.int().min(0),
  task_id: z.string().nullable().describe('The id of the task.'),
  rollout: z.string().nullable().describe('The workflow id of the rollout, for `temper show`.'),
  done: z.boolean(),
});
export type State = z.output<typeof state>;

/** Reads a text as a message. Throws an OpenEnvError. */
export function readMessage(text: string): ClientMessage {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new OpenEnvError('INVALID_JSON', `expected a message as JSON, got ${JSON.stringify(text.slice(0, 100))}`);
  }
  const parsed = clientMessage.safeParse(value);
  if (parsed.success) return parsed.data;
  const type = typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined;
  if (!messageTypes.includes(String(type))) {
    throw new OpenEnvError(
      'UNKNOWN_TYPE',
      `expected a message of type ${messageTypes.join(', ')}, got ${JSON.stringify(type)?.slice(0, 100)}`,
    );
  }
  const errors = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new OpenEnvError('VALIDATION_ERROR', `invalid ${type} message: ${errors.join('; ').slice(0, 1000)}`, {
    errors,
  });
}
