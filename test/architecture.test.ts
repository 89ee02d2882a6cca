import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { importsOf, productSources, readSource, repositoryRoot, sourcesBelow } from './helpers/sources.ts';

/** The paths of temper that each folder may import; `type:` marks those of which it may import types only. */
const allowedImports: Readonly<Record<string, readonly string[]>> = {
  workflows: ['workflows/', 'type:activities/'],
  activities: ['activities/', 'infra/', 'workflows/contracts/', 'workflows/algorithms/'],
  infra: ['infra/', 'workflows/contracts/', 'workflows/algorithms/'],
  workers: ['workers/', 'activities/', 'infra/', 'workflows/'],
};

/** Packages that are pure, and deterministic in the workflow sandbox. */
const workflowPackages = ['@temporalio/workflow', '@temporalio/common', 'zod'];

/** Programs of their own inside a sandbox: their environment is not the stack's. */
const sandboxProgram = /^infra\/(?:agents\/[a-z-]+|sandbox\/kubernetes\/keeper)\/main\.ts$/;

/** Libraries of their own, entered through their index.ts alone. */
const kits = readdirSync(join(repositoryRoot, 'infra/kits'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `infra/kits/${name}`);

/** The layers of the gateway, each with the layers that it may import besides the files at the gateway's root. */
const gatewayLayers: Readonly<Record<string, readonly string[]>> = {
  channel: [],
  http: ['sessions', 'turns', 'branches', 'dialects', 'upstream', 'tools'],
  sessions: ['turns', 'branches', 'tools'],
  turns: ['branches', 'upstream'],
  branches: [],
  dialects: [],
  upstream: [],
  tools: [],
};

/** Kits that import no file outside their folder but the given ones. */
const selfContainedKits: Readonly<Record<string, readonly string[]>> = {
  'infra/kits/chat-tokens': [],
  'infra/kits/tinker-wire': [],
  'infra/kits/embedded-policy': ['infra/kits/tinker-wire/index.ts'],
};

const startedEvent = {
  eventId: '1',
  eventType: 'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED',
  workflowExecutionStartedEventAttributes: { workflowType: { name: 'rollout' } },
};

describe('imports', () => {
  for (const [folder, allowed] of Object.entries(allowedImports)) {
    it(`of ${folder} stay within ${allowed.join(', ')}`, () => {
      const strays = sourcesBelow(folder).flatMap((path) =>
        importsOf(path)
          .filter(({ target, ours, typeOnly }) => ours && !isAllowed(target, typeOnly, allowed))
          .map(({ target }) => `${path} imports ${target}`),
      );
      assert.deepEqual(strays, []);
    });
  }

  it('of contracts stay within contracts', () => {
    const strays = sourcesBelow('workflows/contracts').flatMap((path) =>
      importsOf(path)
        .filter(({ target, ours }) => ours && !target.startsWith('workflows/contracts/'))
        .map(({ target }) => `${path} imports ${target}`),
    );
    assert.deepEqual(strays, []);
  });

  it('of workflows name no Node builtin and no package that does I/O', () => {
    const builtins = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));
    const strays = sourcesBelow('workflows').flatMap((path) =>
      importsOf(path)
        .filter(({ target, ours, typeOnly }) => !ours && !typeOnly && (builtins.has(target) || !isPure(target)))
        .map(({ target }) => `${path} imports ${target}`),
    );
    assert.deepEqual(strays, []);
  });

  for (const kit of kits.filter((name) => existsSync(join(repositoryRoot, name, 'index.ts')))) {
    it(`of ${kit} from outside go through its index.ts`, () => {
      const strays = productSources().flatMap((path) =>
        importsOf(path)
          .filter(({ target }) => isBelow(kit, target) && !isBelow(kit, path) && target !== `${kit}/index.ts`)
          .map(({ target }) => `${path} imports ${target}`),
      );
      assert.deepEqual(strays, []);
    });
  }

  for (const [kit, allowed] of Object.entries(selfContainedKits)) {
    it(`of ${kit} stay within ${[kit, ...allowed].join(', ')}`, () => {
      const strays = sourcesBelow(kit).flatMap((path) =>
        importsOf(path)
          .filter(({ target, ours }) => ours && !isBelow(kit, target) && !allowed.includes(target))
          .map(({ target }) => `${path} imports ${target}`),
      );
      assert.deepEqual(strays, []);
    });
  }

  it('form no cycle of files, type imports included', () => {
    assert.deepEqual(findCycle(importsOfEachFile()), []);
  });

  for (const [layer, allowed] of Object.entries(gatewayLayers)) {
    it(`of infra/gateway/${layer} within the gateway reach only ${['its root', ...allowed].join(', ')}`, () => {
      const strays = sourcesBelow(`infra/gateway/${layer}`).flatMap((path) =>
        importsOf(path)
          .map(({ target }) => ({ target, other: /^infra\/gateway\/([^/]+)\//.exec(target)?.[1] ?? layer }))
          .filter(({ other }) => other !== layer && !allowed.includes(other))
          .map(({ target }) => `${path} imports ${target}`),
      );
      assert.deepEqual(strays, []);
    });
  }

  it('form no cycle of layers, so that none leads from a lower layer to a higher one', () => {
    const layers = new Map<string, string[]>();
    for (const [path, targets] of importsOfEachFile()) {
      const from = layerOf(path);
      const others = targets.map(layerOf).filter((layer) => layer !== from);
      layers.set(from, [...(layers.get(from) ?? []), ...others]);
    }
    assert.deepEqual(findCycle(layers), []);
  });

  it('reach the whole configuration from workers alone: they hand each part what it needs', () => {
    const strays = productSources()
      .filter((path) => !path.startsWith('workers/') && path !== 'infra/settings/config.ts')
      .filter((path) => importsOf(path).some(({ target }) => target === 'infra/settings/config.ts'));
    assert.deepEqual(strays, []);
  });
});

it('workflows/index.ts exports functions from workflow files alone, each of its own name', () => {
  const lines = readSource('workflows/index.ts')
    .split('\n')
    .filter((line) => line !== '' && !/^\s*(\/\*|\*|\/\/)/.test(line));
  for (const line of lines) assert.match(line, /^export \{ (\w+) \} from '\.\/[a-z-]+\.ts';$/);
  const exported = lines.map((line) => /\{ (\w+) \}/.exec(line)?.[1]).sort();
  const files = lines.map((line) => /'\.\/([a-z-]+)\.ts'/.exec(line)?.[1] ?? '');
  const named = files.map((file) => file.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())).sort();
  assert.deepEqual(exported, named);
});

it('no module of workflows has state, because all workflows of a worker share the modules', () => {
  const state = /^(?:export )?(?:let |var |const \w+(?:: [^=]+)? = (?:new |\{\}|\[\]))/;
  const stateful = sourcesBelow('workflows').flatMap((path) =>
    readSource(path)
      .split('\n')
      .filter((line) => state.test(line))
      .map((line) => `${path}: ${line}`),
  );
  assert.deepEqual(stateful, []);
});

it('of a stack, only infra/settings/config.ts reads the environment', () => {
  const readers = productSources()
    .filter(
      (path) =>
        !/^infra\/(setup|process)\//.test(path) && path !== 'infra/settings/config.ts' && !sandboxProgram.test(path),
    )
    .filter((path) => /\bprocess\.env\b/.test(readSource(path)));
  assert.deepEqual(readers, []);
});

describe('the house style', () => {
  const sources = [...productSources(), ...sourcesBelow('test')].filter((path) => !path.includes('/fixtures/'));
  const linesThat = (matches: (line: string) => boolean, paths: readonly string[]): string[] =>
    paths.flatMap((path) =>
      readSource(path)
        .split('\n')
        .filter(matches)
        .map((line) => `${path}: ${line.trim()}`),
    );

  it('names constants in camelCase', () => {
    assert.deepEqual(
      linesThat((line) => /^(?:export )?const [A-Z][A-Z0-9_]+\b/.test(line), sources),
      [],
    );
  });

  it('exports no class but errors: callers see a factory and an interface', () => {
    const isClass = (line: string): boolean => /^export (?:abstract )?class /.test(line);
    assert.deepEqual(
      linesThat(
        (line) => isClass(line) && !/^export class \w+ extends \w*(?:Error|Failure|Unreachable)\b/.test(line),
        productSources(),
      ),
      [],
    );
  });

  it('spreads no literal into a literal', () => {
    assert.deepEqual(
      linesThat((line) => /^\s*\.\.\.(?:\{.*\}|\[[^\]]*\]),?$/.test(line), sources),
      [],
    );
  });
});

it('a file has at most 300 lines, unless it is generated', () => {
  const long = [...productSources(), ...sourcesBelow('test')]
    .filter((path) => !path.endsWith('.generated.ts') && !path.includes('/fixtures/'))
    .map((path) => ({ path, lines: readSource(path).trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > 300);
  assert.deepEqual(long, []);
});

it('the history converters of the SDK work, which need one protobufjs 8 for all its packages', () => {
  const require = createRequire(import.meta.url);
  const { historyFromJSON } = require('@temporalio/common/lib/proto-utils');
  const history = historyFromJSON({ events: [startedEvent] });
  assert.equal(history.events.length, 1);
});

it('the lockfile names every platform of a package with native builds', () => {
  const { packages } = JSON.parse(readSource('package-lock.json'));
  const missing = Object.entries<{ optionalDependencies?: Record<string, string> }>(packages).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) =>
        packages[`node_modules/${name}`] === undefined && packages[`${path}/node_modules/${name}`] === undefined,
    ),
  );
  assert.deepEqual(missing, []);
});

function isBelow(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`);
}

function isAllowed(target: string, typeOnly: boolean, allowed: readonly string[]): boolean {
  return allowed.some((rule) =>
    rule.startsWith('type:') ? typeOnly && target.startsWith(rule.slice('type:'.length)) : target.startsWith(rule),
  );
}

function isPure(specifier: string): boolean {
  return workflowPackages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
}

function importsOfEachFile(): ReadonlyMap<string, readonly string[]> {
  const targets = (path: string): string[] =>
    importsOf(path)
      .filter(({ ours }) => ours)
      .map(({ target }) => target);
  return new Map(productSources().map((path) => [path, targets(path)]));
}

/**
 * Returns the layer of a file: its folder below `infra/`, or its file there; a kit; a top-level folder. Workflows see the
 * activities' interfaces as types, so these count as a layer of their own.
 */
function layerOf(path: string): string {
  const [top = '', second = '', third = ''] = path.split('/');
  if (top === 'workflows') return ['contracts', 'algorithms'].includes(second) ? `${top}/${second}` : top;
  if (top === 'activities') return second === 'interfaces' ? `${top}/${second}` : top;
  if (top !== 'infra') return top;
  return second === 'kits' ? `${top}/${second}/${third}` : `${top}/${second}`;
}

/** Returns the first cycle as a list of nodes; empty when there is none. */
function findCycle(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    done.add(path);
    for (const next of edges.get(path) ?? []) {
      const cycle = visit(next, [...trail, path]);
      if (cycle.length > 0) return cycle;
    }
    return [];
  };
  for (const path of edges.keys()) {
    const cycle = visit(path, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
