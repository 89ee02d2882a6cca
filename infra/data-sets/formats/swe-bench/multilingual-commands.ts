import { named, type TestCommand, type TestCommands } from './test-command.ts';

/*
 * The test commands of SWE-bench Multilingual (swebench/harness/constants/c.py, javascript.py, php.py, rust.py), whose rows have the
 * number of their pull request as their version. A repository is here if its tests need nothing outside the workdir that the
 * published image keeps for root alone, and if a parser here reads their log as the harness does.
 */

/** The tests of a repository's versions. */
interface NumberedTests {
  readonly logParser: string;
  /** The words with which each command begins. */
  readonly runner: string;
  /** The words that name the tests, by version. */
  readonly tests: Readonly<Record<string, string>>;
  /** Returns the commands that build what the tests run. */
  before?(tests: string): readonly string[];
}

const repositories: Readonly<Record<string, NumberedTests>> = {
  'astral-sh/ruff': {
    logParser: 'parse_log_cargo',
    runner: 'cargo test --package ruff_linter',
    tests: {
      15309: "'f52'",
      15330: '--lib rules::eradicate',
      15356: '--lib rules::pycodestyle',
      15394: '--lib rules::flake8_pie',
      15443: '--lib rules::flake8_bandit',
      15543: '--lib rules::pyupgrade',
      15626: '--lib rules::flake8_simplify::tests',
    },
  },
  'burntsushi/ripgrep': {
    logParser: 'parse_log_cargo',
    runner: 'RUSTFLAGS=-Awarnings cargo test --package ripgrep --test integration --',
    tests: {
      2209: 'regression::r2208 --exact',
      2576: 'regression',
    },
  },
  'nushell/nushell': {
    logParser: 'parse_log_cargo',
    runner: 'cargo test',
    tests: {
      12901: '--no-fail-fast shell::env',
      12950: 'external_arguments --no-fail-fast',
      13246: '-p nu-command --no-fail-fast --test main find::',
      13605: '-p nu-command --no-fail-fast ls::',
      13831: '-p nu-command --no-fail-fast split_column',
    },
    before: (tests) => (tests.startsWith('-p') ? ['cargo build'] : []),
  },
  'sharkdp/bat': {
    logParser: 'parse_log_cargo',
    runner: 'RUSTFLAGS=-Awarnings cargo test --package bat --test integration_tests',
    tests: {
      562: 'cache',
      1892: 'ignored_suffix_arg',
      2201: 'pag',
      2260: 'syntax',
      2393: 'cache_',
      2650: 'map_syntax',
      2835: 'header',
      3108: 'pag',
    },
  },
  'tokio-rs/axum': {
    logParser: 'parse_log_cargo',
    runner: 'RUSTFLAGS=-Awarnings cargo test --package axum --lib',
    tests: {
      682: 'trailing -- with_trailing_slash_post without_trailing_slash_post',
      691: '-- routing::tests::nest::nesting_router_at_root --exact',
      734: '-- routing::tests::head',
      1119: 'slash',
      1730: '-- routing::tests::mod state',
      1934: '-- routing::tests::fallback',
      2096: '-- routing::tests::fallback',
    },
  },
  'tokio-rs/tokio': {
    logParser: 'parse_log_cargo',
    runner: '',
    tests: {
      4384: 'RUSTFLAGS=-Awarnings cargo test --package tokio --test net_types_unwind --features full --no-fail-fast',
      4867: 'cargo test --test sync_broadcast --no-fail-fast',
      4898: 'RUSTFLAGS="--cfg tokio_unstable" cargo test --features full --test rt_metrics',
      6551: 'RUSTFLAGS="--cfg tokio_unstable" cargo test --features full --test rt_metrics --no-fail-fast',
      6603: 'cargo test --test sync_mpsc --no-fail-fast',
      6724: 'cargo test --test io_write_all_buf --no-fail-fast',
      6752: 'cargo test --test time_delay_queue --no-fail-fast',
      6838: 'cargo test --test uds_stream --no-fail-fast',
      7139: 'RUSTFLAGS="--cfg tokio_unstable" cargo test --test fs_file --no-fail-fast',
    },
  },
  'uutils/coreutils': {
    logParser: 'parse_log_cargo',
    runner: 'cargo test',
    tests: {
      6377: 'test_env --no-fail-fast',
      6575: 'cksum --no-fail-fast',
      6682: 'mkdir --no-fail-fast',
      6690: '--no-fail-fast -- test_cp_cp test_cp_same_file test_cp_multiple_files test_cp_single_file test_cp_no_file',
      6731: 'backslash --no-fail-fast',
    },
  },
  'briannesbitt/carbon': {
    logParser: 'parse_log_phpunit',
    runner: 'vendor/bin/phpunit --testdox --colors=never',
    tests: {
      2665: 'tests/Carbon/RoundTest.php',
      2752: 'tests/CarbonImmutable/IsTest.php',
      2762: 'tests/CarbonInterval/RoundingTest.php',
      2981: 'tests/CarbonInterval/TotalTest.php',
      3005: 'tests/CarbonInterval/ConstructTest.php',
      3041: 'tests/CarbonPeriod/CreateTest.php',
      3073: 'tests/CarbonInterval/TotalTest.php',
      3098: 'tests/CarbonInterval/ConstructTest.php',
      3103: 'tests/CarbonImmutable/SettersTest.php',
    },
  },
  'laravel/framework': {
    logParser: 'parse_log_phpunit',
    runner: 'vendor/bin/phpunit --testdox --colors=never',
    tests: {
      46234: 'tests/Routing/RoutingUrlGeneratorTest.php',
      48573: 'tests/Cache/CacheArrayStoreTest.php',
      48636: 'tests/Database/DatabaseEloquentModelTest.php',
      51195: 'tests/View/Blade/BladeVerbatimTest.php',
      51890: "tests/Validation/ValidationValidatorTest.php --filter 'attribute'",
      52451: "tests/Validation/ValidationValidatorTest.php --filter 'custom'",
      52680: 'tests/Database/DatabaseEloquentInverseRelationTest.php',
      52684: 'tests/Support/SupportStrTest.php',
      52866: 'tests/Container/ContextualAttributeBindingTest.php',
      53206: 'tests/Support/SupportJsTest.php',
      53696: 'tests/Database/DatabaseSchemaBlueprintTest.php',
      53914: 'tests/Integration/Database/DatabaseConnectionsTest.php',
      53949: 'tests/Support/OnceTest.php',
    },
  },
  'php-cs-fixer/php-cs-fixer': {
    logParser: 'parse_log_phpunit',
    runner: 'vendor/bin/phpunit --testdox --colors=never',
    tests: {
      7523: 'tests/Fixer/Operator/BinaryOperatorSpacesFixerTest.php',
      7635: 'tests/Fixer/Import/FullyQualifiedStrictTypesFixerTest.php',
      7663: 'tests/Fixer/Whitespace/StatementIndentationFixerTest.php',
      7875: 'tests/Fixer/Whitespace/StatementIndentationFixerTest.php',
      7998: 'tests/Fixer/Casing/ConstantCaseFixerTest.php',
      8064: 'tests/Fixer/StringNotation/SimpleToComplexStringVariableFixerTest.php',
      8075: 'tests/Fixer/PhpUnit/PhpUnitAttributesFixerTest.php',
      8256: 'tests/Fixer/PhpTag/BlankLineAfterOpeningTagFixerTest.php',
      8331: 'tests/Fixer/LanguageConstruct/NullableTypeDeclarationFixerTest.php',
      8367: 'tests/Fixer/Import/FullyQualifiedStrictTypesFixerTest.php',
    },
  },
  'phpoffice/phpspreadsheet': {
    logParser: 'parse_log_phpunit',
    runner: './vendor/bin/phpunit --testdox --colors=never',
    tests: {
      3463: 'tests/PhpSpreadsheetTests/Writer/Xlsx/FunctionPrefixTest.php',
      3469: 'tests/PhpSpreadsheetTests/Style/StyleTest.php',
      3570: 'tests/PhpSpreadsheetTests/Calculation/Functions/LookupRef/VLookupTest.php',
      3659: 'tests/PhpSpreadsheetTests/Worksheet/Table/Issue3635Test.php',
      3903: 'tests/PhpSpreadsheetTests/Shared/StringHelperTest.php',
      3940: 'tests/PhpSpreadsheetTests/Worksheet/WorksheetTest.php',
      4114: 'tests/PhpSpreadsheetTests/Worksheet/Issue4112Test.php',
      4186: 'tests/PhpSpreadsheetTests/Writer/Xlsx/FunctionPrefixTest.php',
      4214: 'tests/PhpSpreadsheetTests/Calculation/Functions/MathTrig/RoundDownTest.php',
      4313: 'tests/PhpSpreadsheetTests/Reader/Ods/FormulaTranslatorTest.php',
    },
  },
  'facebook/docusaurus': {
    logParser: 'parse_log_jest',
    runner: 'yarn test',
    tests: {
      8927: 'packages/docusaurus-utils/src/__tests__/markdownLinks.test.ts --verbose',
      9183: 'packages/docusaurus-theme-classic/src/__tests__/options.test.ts --verbose',
      9897: 'packages/docusaurus-utils/src/__tests__/markdownUtils.test.ts --verbose',
      10130: 'packages/docusaurus/src/server/__tests__/brokenLinks.test.ts --verbose',
      10309: 'packages/docusaurus-plugin-content-docs/src/client/__tests__/docsClientUtils.test.ts --verbose',
    },
  },
  'vuejs/core': {
    logParser: 'parse_log_vitest',
    runner: 'pnpm run test',
    tests: {
      11589: 'packages/runtime-core/__tests__/apiWatch.spec.ts --no-watch --reporter=verbose',
      11739: 'packages/runtime-core/__tests__/hydration.spec.ts --no-watch --reporter=verbose -t "mismatch handling"',
      11870: 'packages/runtime-core/__tests__/helpers/renderList.spec.ts --no-watch --reporter=verbose',
      11899: 'packages/compiler-sfc/__tests__/compileStyle.spec.ts --no-watch --reporter=verbose',
      11915: 'packages/compiler-core/__tests__/parse.spec.ts --no-watch --reporter=verbose -t "Element"',
    },
    before: (tests) => (tests.startsWith('packages/compiler-sfc/') ? ['pnpm run build compiler-sfc'] : []),
  },
  'axios/axios': {
    logParser: 'parse_log_tap',
    runner: '',
    tests: {
      4731: "npx mocha -R tap test/unit/adapters/http.js -g 'body length'",
      4738: "timeout 10s npx mocha -R tap test/unit/adapters/http.js -g 'timeout'",
      5085: 'npx mocha -R tap test/unit/regression/bugs.js',
      5892: "npx mocha test/unit/adapters/http.js -R tap -g 'compression'",
      6539: 'npx mocha -R tap test/unit/regression/SNYK-JS-AXIOS-7361793.js',
    },
  },
  'mrdoob/three.js': {
    logParser: 'parse_log_tap',
    runner: 'npx qunit',
    tests: {
      25687: 'test/unit/src/core/Object3D.tests.js -f "/json|clone|copy/i"',
      26589:
        'test/unit/src/objects/Line.tests.js test/unit/src/objects/Mesh.tests.js test/unit/src/objects/Points.tests.js',
      27395: 'test/unit/src/math/Sphere.tests.js',
    },
  },
  'fmtlib/fmt': {
    logParser: 'parse_log_googletest',
    runner: 'ctest --test-dir build -V -R',
    tests: {
      1683: 'printf-test',
      2310: 'format-test',
      2317: 'format-test',
      2457: 'ranges-test',
      3158: 'ranges-test',
      3248: 'format-test',
      3272: 'xchar-test',
      3729: 'std-test',
      3750: 'format-test',
      3863: 'ranges-test',
      3901: 'format-test',
    },
    before: (test) => [
      'mkdir -p build',
      'cmake -B build -S .',
      `cmake --build build --parallel $(nproc) --target ${test}`,
    ],
  },
  'redis/redis': {
    logParser: 'parse_log_redis',
    runner: 'TERM=dumb ./runtest --durable --single',
    tests: {
      9733: 'unit/introspection-2',
      10068: 'unit/type/stream --only "/*XTRIM*"',
      10095: 'unit/type/list --only "/.*(LPOP|RPOP)"',
      10764: 'unit/type/zset --only "BZMPOP"',
      11279: 'unit/acl',
      11510: 'unit/introspection --only "/.*MONITOR.*"',
      11631: 'unit/geo --only "/.*GEOSEARCH .*"',
      11734: 'unit/bitops',
      12272: 'unit/type/string --only "/.*(GETRANGE|SETRANGE).*"',
      12472: 'unit/acl --only "/.*ACL GETUSER.*"',
      13115: 'unit/scripting',
      13338: 'unit/type/stream-cgroups',
    },
    before: () => ['make distclean', 'make'],
  },
  'valkey-io/valkey': {
    logParser: 'parse_log_redis',
    runner: 'TERM=dumb ./runtest --durable --single',
    tests: {
      790: 'unit/cluster/cluster-shards',
      928: 'unit/cluster/replica-migration --only "/.*NOREPLICAS.*"',
      1499: 'unit/introspection-2',
      1842: 'unit/acl --only "/.*ACL LOAD.*"',
    },
    before: () => ['make distclean', 'make'],
  },
};

/** The test commands of SWE-bench Multilingual, each of which names its tests. */
export const multilingualCommands: TestCommands = {
  repositories: Object.keys(repositories),
  find(repository, version): TestCommand | null {
    const known = named(repositories, repository);
    const tests = known && named(known.tests, version ?? '');
    if (known === undefined || tests === undefined) return null;
    const { runner, logParser } = known;
    const before = known.before?.(tests) ?? [];
    return { command: `${runner} ${tests}`.trim(), logParser, before, namesTests: true };
  },
  parser: (repository) => named(repositories, repository)?.logParser ?? null,
  versions: (repository) => Object.keys(named(repositories, repository)?.tests ?? {}),
};
