/**
 * Protects what decides about the end of a run: rules keep the run from changing the frozen files of its checks, the tests that were there, and
 * what decides which tests run and how. A check that runs fewer tests than before counts as failed.
 */

import type { JsonObject } from '../../../kit/json.ts'
import type { Manifest } from '../../changes/workspace-copy.ts'
import { isTestFile } from '../../checks/frozen-checks.ts'
import type { WiggumRecord } from './run-copy.ts'

/** The regular expressions are in the syntax of the rules, which has no look-around. Files that decide, also when they are new, which tests run and how: settings of test runners, and modules that stand in for a runner. */
const runnerNames =
  '(^|/)((vitest|vite|jest|karma|playwright|cypress|ava|wdio|babel|eslint)\\.(config|workspace|setup|preset)\\.[^/]+|' +
  '\\.(mocharc|nycrc|c8rc|swcrc|babelrc|taprc|npmrc|yarnrc|eslintrc|rspec|pnp|env|nvmrc|tool-versions|node-version)[^/]*|bunfig\\.toml|biome\\.jsonc?|' +
  'tsconfig[^/]*\\.json|pytest\\.ini|tox\\.ini|setup\\.cfg|\\.?ruff\\.toml|mypy\\.ini|conftest\\.py|(site|user)customize\\.py|' +
  '(pytest|_pytest|unittest|doctest)(\\.py|/[^/]+)|phpunit\\.xml[^/]*|rust-toolchain[^/]*)$'

/** Installed packages and programs; caches of tools lie there under names that begin with a dot. */
const installedNames = '(^|/)(node_modules/([^.]|\\.bin/)|\\.?venv/)'
const programNames = '(^|/)(node_modules/\\.bin|\\.?venv/s?bin)/'

const isInstalled = /(^|\/)(node_modules|\.git|\.?venv)(\/|$)/

/** Returns the tests that are there, as paths from the workspace. */
export function testsIn(before: Manifest): readonly string[] {
  const files = [...before].filter(([raw, { kind }]) => kind !== 'folder' && !isInstalled.test(raw))
  return files.map(([raw]) => Buffer.from(raw, 'latin1').toString()).filter(isTestFile)
}

/** Returns rules, in the format of the rule files, that keep a run from changing what decides about its end. */
export function protection({
  checks,
  tests,
  protectTests,
}: Pick<WiggumRecord, 'checks' | 'tests' | 'protectTests'>): WiggumRecord['rules'] {
  // A part of a file is compared when the check runs.
  const frozen = [...new Set(checks.flatMap((check) => Object.keys(check.frozen.files ?? {})))].filter((path) => !path.includes('#'))
  const rule = (name: string, reason: string, changes: JsonObject) => ({ name, on: { type: 'propose' }, changes, reason })
  const changed = { change: ['changed', 'deleted'] }
  const allow = 'make the code right instead, or stop and say why this file must change'
  const ofTests = [
    ...(tests.length > 0
      ? [rule('wiggum-tests', `tests that were there before this run are protected; ${allow}`, { path: tests, ...changed })]
      : []),
    rule('wiggum-test-settings', `it decides which tests run and how, so it is protected; ${allow}`, { path: { regex: runnerNames } }),
    rule('wiggum-installed', 'installed packages and programs stay as they are while checks use them', {
      path: { regex: installedNames },
      ...changed,
    }),
    rule('wiggum-programs', 'a new program there could stand in for one that the checks use', { path: { regex: programNames } }),
  ]
  return [
    ...(frozen.length > 0 ? [rule('wiggum-frozen', `a check of this run uses it, so it is frozen; ${allow}`, { path: frozen })] : []),
    ...(protectTests ? ofTests : []),
  ]
}

const counts = [/^# tests (\d+)/m, /^\W*tests (\d+)$/m, /Tests:?\s.*?(\d+) total/, /Tests\s+.*\((\d+)\)/, /Ran (\d+) tests?/]
const summed = /\b(\d+) (?:passed|failed|passing|failing|pass|fail)\b/g

/** Returns how many tests a check says to have run; 0 when it does not say. */
export function testCount(evidence: string): number {
  for (const pattern of counts) {
    const found = pattern.exec(evidence)?.[1]
    if (found !== undefined) return Number(found)
  }
  const found = [...evidence.matchAll(summed)]
  return found.some(([words]) => words.includes('pass')) ? found.reduce((sum, [, each]) => sum + Number(each), 0) : 0
}
