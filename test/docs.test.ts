import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { createAgents } from '../infra/agents/index.ts';
import { commandNames } from '../workers/cli/program.ts';
import { failureKinds } from '../workflows/contracts/failures.ts';
import { tricks } from '../workflows/contracts/flags.ts';
import { groupInput } from '../workflows/contracts/group.ts';
import { fates, outcomes, stopReasons } from '../workflows/contracts/outcome.ts';
import { regradeInput } from '../workflows/contracts/regrade.ts';
import { rolloutInput } from '../workflows/contracts/rollout.ts';
import { runInput, training, warmUp } from '../workflows/contracts/run.ts';
import { searchAttributes } from '../workflows/contracts/search-attributes.ts';
import { sweepInput } from '../workflows/contracts/sweep.ts';
import { sampling } from '../workflows/contracts/trace.ts';
import { winning, winningInContainers } from './adversarial/winning.ts';
import { ROOT, readSource } from './helpers/sources.ts';

const pages = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
];
const texts = pages.filter((page) => page.endsWith('.md'));
const task = 'generated:train/1/0';

/** Rows of a page's tables: what the first cells name in code, with the cells after it. */
function rowsOf(text: string): Map<string, string[]> {
  const rows = text.split('\n').filter((line) => line.startsWith('| `'));
  return new Map(
    rows.map((row) => {
      const [, first = '', ...cells] = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
      return [first.slice(1, first.indexOf('`', 1)), cells] as const;
    }),
  );
}

/** The part of a page under one heading. */
function section(text: string, heading: string): string {
  const [, found] = text.split(`\n## ${heading}\n`);
  assert.ok(found !== undefined, `expected a heading "${heading}"`);
  return found.split('\n## ')[0] ?? '';
}

describe('the documents', () => {
  it('keep to their lengths', () => {
    const lines = (page: string): number => readSource(page).trimEnd().split('\n').length;
    assert.ok(lines('README.md') <= 120, `README.md has ${lines('README.md')} lines`);
    assert.ok(lines('AGENTS.md') <= 60, `AGENTS.md has ${lines('AGENTS.md')} lines`);
  });

  it('link to nothing that is not there', () => {
    const dead = texts.flatMap((page) =>
      [...readSource(page).matchAll(/\]\(([^)#:]+)\)/g)]
        .map(([, target = '']) => join(dirname(page), target))
        .filter((target) => !existsSync(join(ROOT, target)))
        .map((target) => `${page} links to ${target}`),
    );
    assert.deepEqual(dead, []);
  });

  it('name no command that temper lacks', () => {
    const unknown = texts.flatMap((page) =>
      [...readSource(page).matchAll(/(?:^|[$`] ?|npx )temper ([a-z]+)/gm)]
        .map(([, name = '']) => name)
        .filter((name) => !commandNames.includes(name))
        .map((name) => `${page}: temper ${name}`),
    );
    assert.deepEqual(unknown, []);
  });
});

describe('docs/failures.md', () => {
  const text = readSource('docs/failures.md');
  const rows = rowsOf(text);

  for (const [type, { outcome, retryable }] of Object.entries(failureKinds)) {
    it(`says what ${type} is, its outcome and whether it is retried`, () => {
      const [described = '', retried = ''] = rows.get(type) ?? [];
      assert.ok(described.includes(outcome), `${type}: expected ${outcome}, got "${described}"`);
      assert.match(retried, retryable ? /^yes$/ : /^(no|in a fresh sandbox)$/);
    });
  }

  it('names every way in which an agent ends and every fate of a group', () => {
    const missing = [...stopReasons, ...fates].filter((name) => !text.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});

describe('docs/grading.md', () => {
  const text = readSource('docs/grading.md');

  it('has a row for each flag, in their order', () => {
    assert.deepEqual([...rowsOf(section(text, 'Flags')).keys()], [...tricks]);
  });

  it('lists each trick that still wins, with its flags, and no other', () => {
    const rows = section(text, 'What still wins')
      .split('\n')
      .filter((line) => /^\| [a-z]/.test(line))
      .map((line) => line.split('|').map((cell) => cell.trim()))
      .map(
        ([, name = '', , flags = '']) =>
          `${name}: ${[...flags.matchAll(/`([^`]+)`/g)].map(([, flag]) => flag).join(' ')}`,
      );
    const tried = [...winning, ...winningInContainers].map(({ name, flags }) => `${name}: ${flags.join(' ')}`);
    assert.deepEqual(rows.sort(), tried.sort());
  });
});

describe('docs/agents.md', () => {
  const rows = rowsOf(readSource('docs/agents.md').split('Options come')[0] ?? '');
  const agents = createAgents({ cacheDir: '/nonexistent' });

  it('lists every agent, each of npm with the version that its package names', () => {
    assert.deepEqual([...rows.keys()].sort(), [...agents.names].sort());
    for (const [name, [, version, , sandbox = '']] of rows) {
      const manifest = `infra/agents/${name}/package.json`;
      const pinned = existsSync(join(ROOT, manifest))
        ? Object.values(JSON.parse(readSource(manifest)).dependencies)
        : ['–'];
      assert.deepEqual([version], pinned, name);
      assert.equal(sandbox.startsWith('Docker'), agents.get(name).sandbox === 'docker', name);
    }
  });
});

describe('docs/operations.md', () => {
  const text = readSource('docs/operations.md');

  it('explains every setting, and no other', () => {
    const known = new Set(readSource('infra/config.ts').match(/\bTEMPER_[A-Z_]+/g));
    const described = new Set([...rowsOf(text).keys()].filter((name) => name.startsWith('TEMPER_')));
    assert.deepEqual([...described].sort(), [...known].sort());
  });
});

describe('docs/workflows.md', () => {
  const text = readSource('docs/workflows.md');
  const inputs = [
    { heading: 'rollout', shape: rolloutInput.shape, values: rolloutInput.parse({ task }) },
    { heading: 'rollout', shape: sampling.shape, values: sampling.parse({}) },
    { heading: 'group', shape: groupInput.shape, values: groupInput.parse({ task }) },
    { heading: 'trainingRun', shape: runInput.shape, values: runInput.parse({}) },
    { heading: 'trainingRun', shape: training.shape, values: training.parse({}) },
    { heading: 'evaluationSweep', shape: sweepInput.shape, values: sweepInput.parse({ tasks: 'generated:test/1' }) },
    { heading: 'regrade', shape: regradeInput.shape, values: regradeInput.parse({ rollouts: ['my-rollout'] }) },
  ];

  for (const { heading, shape, values } of inputs) {
    it(`names every input of ${heading} with its default: ${Object.keys(shape).slice(0, 3).join(', ')}, …`, () => {
      const rows = rowsOf(section(text, heading).replace(/\n\| `warmUp` \| Default[\s\S]*?\n\n/, '\n'));
      for (const field of Object.keys(shape)) {
        const [shown] = rows.get(field) ?? [];
        assert.ok(shown !== undefined, `${heading}: expected a row for ${field}`);
        const value: unknown = Reflect.get(values, field);
        if (typeof value === 'object' || value === undefined || shown === 'required') continue;
        assert.equal(shown, `\`${value}\``, `${heading}: default of ${field}`);
      }
    });
  }

  it('names every input of the warm-up with its default', () => {
    const [, table = ''] = text.split('| `warmUp` | Default | |');
    const rows = rowsOf(table.split('\n\n')[0] ?? '');
    for (const [field, value] of Object.entries(warmUp.parse({ steps: 1 }))) {
      assert.equal(rows.get(field)?.[0], field === 'steps' ? 'required' : `\`${value}\``, field);
    }
  });

  it('names every workflow, outcome and search attribute', () => {
    const workflows = [...readSource('workflows/index.ts').matchAll(/export \{ (\w+) \}/g)].map(
      ([, name = '']) => name,
    );
    const attributes = Object.values(searchAttributes).map(({ name }) => name);
    const missing = [...workflows, ...outcomes, ...attributes].filter((name) => !text.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
});

describe('docs/gateway-cases.md', () => {
  const text = readSource('docs/gateway-cases.md');
  const rows = text
    .split('\n')
    .filter((line) => /^\| [A-Z]\d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const cited = [...text.matchAll(/`([^`\s]+\.ts)`/g)].map(([, path = '']) =>
    path.startsWith('test/') ? path : `test/infra/gateway/${path}`,
  );

  it('has a test for each case, or a reason why there is none, and each case once', () => {
    const bare = rows.filter((cells) => !/\.ts`|^(?:does not apply|no test): ./.test(cells[4] ?? ''));
    assert.deepEqual(bare, []);
    const ids = rows.flatMap((cells) => (cells[1] ?? '').split(', '));
    assert.deepEqual(
      ids.filter((id, index) => ids.indexOf(id) !== index),
      [],
    );
    assert.ok(ids.length > 100, `${ids.length} cases`);
  });

  it('names tests that are there', () => {
    assert.deepEqual(
      cited.filter((path) => !existsSync(join(ROOT, path))),
      [],
    );
  });
});
