import { z } from 'zod';
import { groupInput } from '../../workflows/contracts/group.ts';
import { controlQueue } from '../../workflows/contracts/queues.ts';
import { regradeInput } from '../../workflows/contracts/regrade.ts';
import { rolloutInput } from '../../workflows/contracts/rollout.ts';
import { runInput } from '../../workflows/contracts/run.ts';
import { sweepInput } from '../../workflows/contracts/sweep.ts';
import { code, entry, join, paragraph } from './markdown.ts';

const workflows = {
  rollout: rolloutInput,
  group: groupInput,
  trainingRun: runInput,
  evaluationSweep: sweepInput,
  regrade: regradeInput,
};
/** Objects that another section describes, or that no user writes. */
const described: Readonly<Record<string, string>> = {
  settings: 'the fields of a [rollout](#rollout) from `agent` to `unscored`',
  member: 'object',
};

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** Returns the page of every workflow's input, field by field. */
export function inputsPage(): string {
  return join(
    '# Workflow inputs',
    paragraph(
      `The input of a workflow is one JSON object. An unknown field or a value out of its bounds fails the workflow immediately, with a message that names field, expected and actual value. Task queue of all workflows: \`${controlQueue}\`. See the [guide](../guides/workflows.md) for how to start them.`,
    ),
    ...Object.entries(workflows).map(([name, schema]) =>
      section(name, z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema),
    ),
    '## trainingStep',
    paragraph('Started by its run only; a direct start is refused.'),
    '## reaper',
    entry('host', ['required'], 'The host whose sandboxes are checked.'),
    paragraph(
      'The result is `{"sandboxes": [...], "suspected": [...], "images": [...], "groups": [...], "rollouts": [...]}`: what it removed and cancelled. Sandboxes that are `suspected` look orphaned for the first time; the next look removes them if they still do. With `"hostLost": true` the host is lost, and nothing on it was looked at. A schedule per host starts it each minute.',
    ),
    '## retention',
    paragraph(
      'It has no input. The result is `{"categories": [{"category", "removed", "bytes", "skipped"}]}`, of the categories in which something was removed or that were skipped. A schedule starts it each hour.',
    ),
  );
}

function section(name: string, schema: Schema): string {
  const fields = Object.entries(schema.properties ?? {});
  const nested = fields.filter(([field, { properties }]) => properties !== undefined && described[field] === undefined);
  return join(
    `## ${name}`,
    list(schema),
    ...nested.map(([field, one]) => join(`### ${name}: ${field}`, list(one)).trimEnd()),
  ).trimEnd();
}

function list({ properties = {}, required = [] }: Schema): string {
  return Object.entries(properties)
    .map(([field, schema]) => entry(field, facts(field, schema, required.includes(field)), schema.description ?? ''))
    .join('\n');
}

function facts(field: string, schema: Schema, required: boolean): readonly string[] {
  const { default: fallback } = schema;
  const shown =
    fallback === undefined || (typeof fallback === 'object' && fallback !== null && !Array.isArray(fallback));
  return [
    described[field] ?? typeOf(schema),
    ...(required ? ['required'] : []),
    ...(shown ? [] : [`default: ${code(JSON.stringify(fallback))}`]),
  ];
}

function typeOf(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => code(String(value))).join(', ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.anyOf !== undefined) {
    const plain = schema.anyOf.filter(({ properties }) => properties === undefined);
    return [...new Set(plain.map(typeOf))].join(' or ');
  }
  if (schema.type === 'array') return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.type === 'integer' || schema.type === 'number') return `${schema.type}${bounds(schema)}`;
  return schema.type ?? 'any';
}

function bounds({ minimum, maximum, exclusiveMinimum }: Schema): string {
  const low = exclusiveMinimum === undefined ? ` from ${minimum}` : ` above ${exclusiveMinimum}`;
  return `${low} to ${maximum}`;
}
