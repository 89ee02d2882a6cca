import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';
import { stalePages } from '../docs/generate.ts';
import { unions } from '../docs/generator/glossary.ts';
import { createAgents } from '../infra/agents/index.ts';
import { commandNames, loadAllCommands } from '../workers/cli/program.ts';
import { tricks } from '../workflows/contracts/flags.ts';
import { winning, winningInContainers } from './adversarial/winning.ts';
import { readSource, repositoryRoot } from './helpers/sources.ts';

const docs = readdirSync(join(repositoryRoot, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && !name.includes('.vitepress'))
  .map((name) => `docs/${name}`);
const texts = ['README.md', 'AGENTS.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs];
/** The READMEs of the folders, which say in two or three lines what a folder holds. */
const readmes = ['activities', 'infra', 'test', 'workers', 'workflows'].flatMap((folder) =>
  readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /(^|\/)README\.md$/.test(name) && !name.includes('fixtures/') && !name.includes('node_modules'))
    .map((name) => `${folder}/${name}`),
);
const written = texts.filter((page) => !page.startsWith('docs/reference/') && page !== 'docs/glossary.md');
/** A path of this repository, as prose names it in backticks; without `<placeholders>` and globs. */
const repositoryPath = /`((?:\.ci|\.github|activities|docs|infra|test|workers|workflows)\/[\w./-]*)`/g;

const prose = (text: string): string => text.replaceAll(/^( *)```[\s\S]*?^\1```/gm, '');

/** The rows of the tables of a page: what the first cell names in code, with the cells after it. */
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

/** Returns the anchors of a page that work both on GitHub and on the site: the two spell punctuation differently. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = (prose(readSource(page)).match(/^#+ .*$/gm) ?? []).map((heading) => heading.replace(/^#+ /, ''));
  const onGitHub = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(/\s/g, '-');
  const onSite = (text: string) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w]+/g, '-')
      .replaceAll(/^-|-$/g, '');
  return new Set(headings.filter((text) => onGitHub(text) === onSite(text)).map(onSite));
}

describe('the documents', () => {
  it('keep to their lengths', () => {
    const caps: Readonly<Record<string, number>> = { 'README.md': 120, 'AGENTS.md': 70, 'docs/architecture.md': 260 };
    const long = written
      .filter((page) => page !== 'CHANGELOG.md')
      .map((page) => ({ page, lines: readSource(page).trimEnd().split('\n').length, cap: caps[page] ?? 210 }))
      .filter(({ lines, cap }) => lines > cap);
    assert.deepEqual(long, []);
  });

  it('wrap their prose at 120 columns and keep table cells short', () => {
    const long = [...texts, ...readmes].flatMap((page) =>
      prose(readSource(page))
        .split('\n')
        .filter(
          (line) => (line.startsWith('|') ? Math.max(...line.split('|').map((c) => c.length)) : line.length) > 122,
        )
        .filter((line) => !/^!?\[/.test(line))
        .map((line) => `${page}: ${line.slice(0, 80)}…`),
    );
    assert.deepEqual(long, []);
  });

  it('begin the README of each folder with its path', () => {
    assert.deepEqual(
      readmes.filter((page) => !readSource(page).startsWith(`# ${dirname(page)}\n\n`)),
      [],
    );
  });

  it('link to pages and headings that exist', () => {
    const dead = [...texts, ...readmes].flatMap((page) =>
      [...readSource(page).matchAll(/\]\(([^):]+)\)/g)].flatMap(([, target = '']) => {
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : normalize(join(dirname(page), path));
        const found = existsSync(join(repositoryRoot, file)) && (anchor === undefined || anchorsOf(file).has(anchor));
        return found ? [] : [`${page} links to ${target}`];
      }),
    );
    assert.deepEqual(dead, []);
  });

  it('name only paths of the repository that exist', () => {
    const missing = [...texts, ...readmes]
      .filter((page) => page !== 'CHANGELOG.md')
      .flatMap((page) =>
        [...readSource(page).matchAll(repositoryPath)]
          .filter(([, path = '']) => !existsSync(join(repositoryRoot, path)))
          .map(([, path]) => `${page} names ${path}`),
      );
    assert.deepEqual(missing, []);
  });

  it('name only commands and options that temper has', async () => {
    const options = new Map<string, ReadonlySet<string>>();
    for (const command of (await loadAllCommands()).commands) {
      const all = [command, ...command.commands].flatMap((one) => one.options.map(({ long }) => long ?? ''));
      options.set(command.name(), new Set([...all, '--help', '--version']));
    }
    const unknown = texts.flatMap((page) =>
      [...readSource(page).matchAll(/(?:^|[$`] ?|npx )temper ([a-z][a-z0-9]*)([^`\n]*(?:\\\n[^`\n]*)*)/gm)].flatMap(
        ([, name = '', rest = '']) => {
          if (!commandNames.includes(name)) return [`${page}: temper ${name}`];
          if (name === 'temporal') return []; // the options are those of Temporal's CLI
          const flags = rest.replace(/ # .*| \| .*/, '').match(/(?<=\s)--[a-z-]+/g) ?? [];
          return flags.filter((flag) => !options.get(name)?.has(flag)).map((flag) => `${page}: temper ${name} ${flag}`);
        },
      ),
    );
    assert.deepEqual(unknown, []);
  });

  it('name nothing that lies outside the repository', () => {
    const outside = texts.filter((page) => /\.\.\/shared|beside the checkout/.test(readSource(page)));
    assert.deepEqual(outside, []);
  });

  it('are all reachable from docs/index.md', () => {
    const linked = [...readSource('docs/index.md').matchAll(/\]\(([^)#]+\.md)\)/g)].map(([, page]) => `docs/${page}`);
    assert.deepEqual(
      docs.filter((page) => page !== 'docs/index.md' && !linked.includes(page)),
      [],
    );
  });

  it('name the Node version of package.json', () => {
    const minimum = String(JSON.parse(readSource('package.json')).engines.node).replace('>=', '');
    const pages = ['README.md', 'CONTRIBUTING.md', 'docs/guides/quick-start.md'];
    for (const page of pages) assert.ok(readSource(page).includes(`Node ${minimum} or newer`), page);
  });
});

describe('the generated reference', () => {
  it('says what the code says', async () => {
    assert.deepEqual(await stalePages(), [], 'run `node docs/generate.ts` and commit what it writes');
  });

  it('defines every member of the closed unions in the glossary', () => {
    const glossary = readSource('docs/glossary.md');
    for (const [name, members] of Object.entries(unions)) {
      assert.ok(glossary.includes(`<!-- ${name} -->`), `docs/glossary.md has no list of ${name}`);
      for (const member of Object.keys(members)) assert.ok(glossary.includes(`**\`${member}\`**`), member);
    }
  });
});

it('docs/glossary.md defines every word that names a thing of temper', () => {
  const words =
    `run step group rollout epoch attempt turn trace segment branch session task sandbox workspace diff verdict
    reward policy engine replica trainer store host slot flag sweep tally`.split(/\s+/);
  const defined = new Set(
    [...readSource('docs/glossary.md').matchAll(/\*\*([a-z -]+)\*\*/gi)].map(([, word = '']) => word.toLowerCase()),
  );
  assert.deepEqual(
    words.filter((word) => !defined.has(word)),
    [],
  );
});

describe('docs/guides/grading.md', () => {
  const text = readSource('docs/guides/grading.md');

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

describe('docs/guides/agents.md', () => {
  const rows = rowsOf(readSource('docs/guides/agents.md').split('```')[0] ?? '');
  const agents = createAgents({ cacheDir: '/nonexistent' });

  it('lists every agent, each of npm with the version that its package names', () => {
    assert.deepEqual([...rows.keys()].sort(), [...agents.names].sort());
    for (const [name, [, version, , sandbox = '']] of rows) {
      const manifest = `infra/agents/${name}/package.json`;
      const pinned = existsSync(join(repositoryRoot, manifest))
        ? Object.values(JSON.parse(readSource(manifest)).dependencies)
        : ['–'];
      assert.deepEqual([version], pinned, name);
      assert.equal(sandbox.startsWith('not local'), agents.get(name).sandboxes?.includes('local') === false, name);
    }
  });
});

describe('docs/guides/workflows.md', () => {
  it('names every workflow', () => {
    const text = readSource('docs/guides/workflows.md');
    const workflows = [...readSource('workflows/index.ts').matchAll(/export \{ (\w+) \}/g)].map(([, name]) => name);
    assert.deepEqual(
      workflows.filter((name) => !text.includes(`\`${name}\``)),
      [],
    );
  });
});

describe('docs/design/gateway-cases.md', () => {
  const text = readSource('docs/design/gateway-cases.md');
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Case '))
    .map((line) => line.split('|').map((cell) => cell.trim()));

  it('has a test for each case, or a reason why there is none, and each case once', () => {
    const bare = rows.filter((cells) => !/\.ts`|^(?:does not apply|no test): ./.test(cells[3] ?? ''));
    assert.deepEqual(bare, []);
    const cases = rows.map((cells) => cells[1] ?? '');
    assert.equal(new Set(cases).size, cases.length);
    assert.ok(cases.length > 70, `${cases.length} cases`);
  });

  it('names tests that exist', () => {
    const cited = [...text.matchAll(/`([^`\s]+\.ts)`/g)].map(([, path = '']) =>
      path.startsWith('test/') ? path : `test/infra/gateway/${path}`,
    );
    assert.deepEqual(
      cited.filter((path) => !existsSync(join(repositoryRoot, path))),
      [],
    );
  });
});
