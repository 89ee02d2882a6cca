import { automake } from './automake.ts';
import { bats } from './bats.ts';
import { cargo } from './cargo.ts';
import { catch2 } from './catch2.ts';
import { ctest, ctestLower } from './ctest.ts';
import { goJson, goJsonNames } from './go-json.ts';
import { goText, goTextNames, goTextParents } from './go-text.ts';
import { googletest } from './googletest.ts';
import { gradle, gradleLines, gradleTasks } from './gradle.ts';
import { jest, jestFiles, jestPlainFiles, jestTitles } from './jest.ts';
import { junit } from './junit.ts';
import type { LogParser } from './log-parser.ts';
import { maven } from './maven.ts';
import { mavenBuilds } from './maven-builds.ts';
import { mocha, mochaTitles } from './mocha.ts';
import { mochaJson, mochaJsonFiles } from './mocha-json.ts';
import { nodeSpec } from './node-spec.ts';
import { phpunit } from './phpunit.ts';
import { ponytest } from './ponytest.ts';
import { pytest } from './pytest.ts';
import { withMouseButtonNumbers, withShortPaths } from './pytest-id.ts';
import { redis, redisPlainTitles } from './redis.ts';
import { withSpelling } from './result-collector.ts';
import { rspec } from './rspec.ts';
import { sympy } from './sympy.ts';
import { tap } from './tap.ts';
import { tapLines } from './tap-lines.ts';
import { django, unittest } from './unittest.ts';
import { vitest } from './vitest.ts';
import { vitestLines, vitestTitles } from './vitest-lines.ts';
import { workspaceTitles } from './workspace-titles.ts';

/**
 * The parsers of test logs, by the runner's name. Where a data set spells ids in its own way, the runner has a second entry:
 * `pytest-options`, `pytest-matplotlib`, `django`, `jest-titles` and `go-names` are SWE-bench's, as are `gradle-lines`,
 * `maven-builds`, `tap-lines` and `vitest-lines`; `ctest-lower`, `go-parents`, `gradle-tasks`, `jest-files`,
 * `jest-plain-files`, `mocha-json-files`, `mocha-titles`, `redis-plain-titles`, `vitest-titles` and `workspace-titles` are
 * Multi-SWE-bench's.
 */
export const logParsers = {
  automake,
  bats,
  cargo,
  catch2,
  ctest,
  'ctest-lower': ctestLower,
  django,
  'go-json': goJson,
  'go-json-names': goJsonNames,
  'go-names': goTextNames,
  'go-parents': goTextParents,
  'go-text': goText,
  googletest,
  gradle,
  'gradle-lines': gradleLines,
  'gradle-tasks': gradleTasks,
  jest,
  'jest-files': jestFiles,
  'jest-plain-files': jestPlainFiles,
  'jest-titles': jestTitles,
  junit,
  maven,
  'maven-builds': mavenBuilds,
  mocha,
  'mocha-json': mochaJson,
  'mocha-json-files': mochaJsonFiles,
  'mocha-titles': mochaTitles,
  'node-spec': nodeSpec,
  phpunit,
  ponytest,
  pytest,
  'pytest-matplotlib': withSpelling(pytest, withMouseButtonNumbers),
  'pytest-options': withSpelling(pytest, withShortPaths),
  redis,
  'redis-plain-titles': redisPlainTitles,
  rspec,
  sympy,
  tap,
  'tap-lines': tapLines,
  unittest,
  vitest,
  'vitest-lines': vitestLines,
  'vitest-titles': vitestTitles,
  'workspace-titles': workspaceTitles,
} as const satisfies Record<string, LogParser>;

export type LogParserName = keyof typeof logParsers;

/**
 * The names that data sets give their parsers, and the parser here that reads the same logs. A name is listed only if this
 * parser spells ids as the data set's does: with other ids a test that passed would be missing. The names of SWE-bench are
 * also those of SWE-Gym, SWE-smith and SWE-rebench. Multi-SWE-bench has a parser per repository; the listed ones read the
 * runners' own formats.
 */
const published: Readonly<Record<string, LogParserName>> = {
  parse_log_pytest: 'pytest',
  parse_log_pytest_v2: 'pytest',
  parse_log_pytest_v3: 'pytest',
  parse_log_seaborn: 'pytest',
  parse_log_pytest_options: 'pytest-options',
  parse_log_matplotlib: 'pytest-matplotlib',
  parse_log_django: 'django',
  parse_log_sympy: 'sympy',
  parse_log_gotest: 'go-names',
  parse_log_cargo: 'cargo',
  parse_log_jest: 'jest-titles',
  parse_log_vitest: 'vitest-lines',
  parse_log_phpunit: 'phpunit',
  parse_log_googletest: 'googletest',
  parse_log_gradle_custom: 'gradle-lines',
  parse_log_jq: 'automake',
  parse_log_maven: 'maven-builds',
  parse_log_redis: 'redis',
  parse_log_tap: 'tap-lines',
  ...namesOf('go-names', 'beego/beego', 'caddyserver/caddy', 'cli/cli', 'concourse/concourse', 'fatedier/frp'),
  ...namesOf('go-names', 'gohugoio/hugo', 'istio/istio', 'jesseduffield/lazygit', 'junegunn/fzf', 'labstack/echo'),
  ...namesOf('go-names', 'nats-io/nats-server', 'nektos/act', 'prometheus/prometheus', 'syncthing/syncthing'),
  ...namesOf('go-parents', 'etcd-io/etcd', 'gin-gonic/gin', 'go-gorm/gorm', 'grpc/grpc-go', 'zeromicro/go-zero'),
  ...namesOf('cargo', 'BurntSushi/ripgrep', 'alacritty/alacritty', 'bee-san/RustScan', 'clap-rs/clap'),
  ...namesOf('cargo', 'fish-shell/fish-shell', 'helix-editor/helix', 'nushell/nushell', 'rayon-rs/rayon'),
  ...namesOf('cargo', 'rusqlite/rusqlite', 'rust-lang/mdBook', 'serde-rs/serde', 'sharkdp/bat', 'sharkdp/fd'),
  ...namesOf('cargo', 'tokio-rs/bytes', 'tokio-rs/tokio', 'tokio-rs/tracing'),
  ...namesOf('maven', 'alibaba/fastjson2', 'apache/dubbo', 'google/gson'),
  ...namesOf('maven', 'fasterxml/jackson-core', 'fasterxml/jackson-databind', 'fasterxml/jackson-dataformat-xml'),
  ...namesOf('gradle-tasks', 'elastic/logstash', 'mockito/mockito', 'googlecontainertools/jib'),
  ...namesOf('gradle-tasks', 'junit-team/junit5', 'micronaut-projects/micronaut-core', 'spotbugs/spotbugs'),
  ...namesOf('gradle-tasks', 'Kotlin/kotlinx.coroutines', 'ankidroid/Anki-Android', 'pinterest/ktlint'),
  ...namesOf('gradle-tasks', 'streetcomplete/StreetComplete', 'thunderbird/thunderbird-android'),
  ...namesOf('automake', 'facebook/zstd', 'jqlang/jq'),
  ...namesOf('ctest', 'CGAL/cgal', 'OpenMathLib/OpenBLAS', 'fluent/fluent-bit', 'fmtlib/fmt', 'libgit2/libgit2'),
  ...namesOf('ctest', 'libsdl-org/SDL', 'nlohmann/json', 'rdkit/rdkit', 'root-project/root', 'simdjson/simdjson'),
  ...namesOf('googletest', 'yhirose/cpp-httplib'),
  ...namesOf('ctest-lower', 'catchorg/Catch2'),
  ...namesOf('ponytest', 'ponylang/ponyc'),
  ...namesOf('redis-plain-titles', 'redis/redis', 'valkey-io/valkey'),
  ...namesOf('jest-files', 'anuraghazra/github-readme-stats', 'iamkun/dayjs'),
  ...namesOf('jest-plain-files', 'darkreader/darkreader'),
  ...namesOf('mocha-titles', 'axios/axios'),
  ...namesOf('mocha-json', 'expressjs/express'),
  ...namesOf('mocha-json-files', 'mui/material-ui'),
  ...namesOf('vitest-titles', 'sveltejs/svelte', 'vuejs/core'),
  ...namesOf('workspace-titles', 'Kong/insomnia'),
};

/** Names a runner's parser by repositories of Multi-SWE-bench. */
function namesOf(runner: LogParserName, ...repositories: readonly string[]): Readonly<Record<string, LogParserName>> {
  return Object.fromEntries(repositories.map((repository) => [repository, runner]));
}

/** Every known name: the runners' and the data sets'. */
export const logParserNames: readonly string[] = [...Object.keys(logParsers), ...Object.keys(published)];

/** Returns the parser with a runner's or a data set's name; null if there is none. */
export function findLogParser(name: string): LogParser | null {
  const runner = runnerOf(name);
  return runner === null ? null : logParsers[runner];
}

/** Returns the runner's name for a parser's name; null if the name is unknown. */
export function runnerOf(name: string): LogParserName | null {
  if (isRunner(name)) return name;
  return Object.hasOwn(published, name) ? (published[name] ?? null) : null;
}

const isRunner = (name: string): name is LogParserName => Object.hasOwn(logParsers, name);
