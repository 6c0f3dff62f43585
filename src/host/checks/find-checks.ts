/** Finds the checks of a project: those that its `.braidclaw/checks.toml` names, and those that its files suggest. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../../config/text/read-toml-file.ts'
import { readTables, type TableReader } from '../../config/text/table-reader.ts'
import { readToml } from '../../config/text/toml.ts'
import { createTrust } from '../../config/trust.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { didYouMean } from '../../kit/text.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import type { CheckSpec } from './contract.ts'
import { staticToolOf, staticTools } from './static-tools.ts'

const checkName = /^[A-Za-z0-9][\w.-]{0,63}$/

/** Returns the path of the file that names a project's checks. */
export function checksFile({ config }: Pick<Setup, 'config'>): string {
  return join(config.workspaceDir, '.braidclaw', 'checks.toml')
}

/** @param names only these; none: all. @throws FailureError `usage` when the file is wrong, or a name is not in it */
export function configuredChecks(setup: Pick<Setup, 'config' | 'paths'>, names: readonly string[] = []): readonly CheckSpec[] {
  const file = checksFile(setup)
  const read = readConfigFile(file)
  if (read.state === 'unusable') throw new FailureError('usage', `${file} ${read.why}`)
  const { workspaceDir } = setup.config
  // Somebody else's project could name any command, and the sandbox lets it read the workspace.
  if (read.state === 'text' && !createTrust(setup.paths.trustedFolders).isTrusted(workspaceDir))
    throw new FailureError(
      'usage',
      `${file} is not used: this folder is not trusted; read it, then: braidclaw trust ${quoteText(workspaceDir)}`,
    )
  const { value: specs, problems } = readTables(read.state === 'text' ? read.text : '', (root) => root.tables('checks').map(specOf))
  if (problems.length > 0)
    throw new FailureError(
      'usage',
      problems.map((problem) => `${file}: ${problem}`),
    )
  const known = specs.map(({ name }) => name)
  const missing = names.find((name) => !known.includes(name))
  const advice = missing === undefined ? '' : didYouMean(missing, known) || `; there are: ${known.join(', ') || 'none'}`
  if (missing !== undefined) throw new FailureError('usage', `no check ${JSON.stringify(missing)} in ${file}${advice}`)
  return names.length === 0 ? specs : specs.filter(({ name }) => names.includes(name))
}

function specOf([name, table]: readonly [string, TableReader]): CheckSpec {
  const kinds = ['command', 'stories', 'criteria'].filter((kind) => table.has(kind))
  if (kinds.length !== 1) table.wrong('', 'needs exactly one of: command, stories, criteria')
  if (!checkName.test(name)) table.wrong('', 'has a name of letters, digits, "-", "_" and "."')
  const [runs, seconds] = [
    table.whole('runs', { min: 1, max: 100, fallback: 1 }),
    table.whole('timeout_s', { min: 0, max: 86_400, fallback: 0 }),
  ]
  const limits = { runs, pass: table.whole('pass', { min: 1, max: runs, fallback: runs }), timeoutMs: seconds * 1_000 || undefined }
  const text = table.text(kinds[0] ?? 'command', '')
  table.end()
  if (kinds[0] === 'stories') return { name, tier: 2, stories: text, ...limits }
  return kinds[0] === 'criteria' ? { name, tier: 3, criteria: text, ...limits } : { ...commandCheck(text), name, ...limits }
}

/** Returns the check of a command that a person typed; its name is the command. */
export function commandCheck(command: string): CheckSpec {
  return { name: command, tier: staticToolOf(command) ? 1 : 0, command }
}

/** Returns the checks that a project's files suggest: scripts of package.json, static tools, stories. */
export function suggestedChecks(workspace: string): readonly CheckSpec[] {
  const has = (path: string) => existsSync(join(workspace, path))
  const run = has('bun.lock') ? 'bun run' : has('pnpm-lock.yaml') ? 'pnpm run' : has('yarn.lock') ? 'yarn run' : 'npm run'
  const data = parseJson(textOf(join(workspace, 'package.json')))
  const scripts = isObject(data) && isObject(data.scripts) ? data.scripts : {}
  const wanted = ['test', 'typecheck', 'lint'].filter((name) => {
    const script = scripts[name]
    return typeof script === 'string' && !script.includes('no test specified')
  })
  const fromScripts = wanted.map((name): CheckSpec => ({ name, tier: 0, command: `${run} ${name}`.replace('npm run test', 'npm test') }))
  const toml = readToml(textOf(join(workspace, 'pyproject.toml'))).data
  const tables = isObject(toml.tool) ? Object.keys(toml.tool) : []
  const isShown = (path: string) => (path.includes('#') ? tables.includes(path.split('.').at(-1) ?? '') : has(path))
  const fromTools = staticTools
    .filter(({ shownBy }) => shownBy.some(isShown))
    .map(({ name, command }): CheckSpec => ({ name, tier: 1, command }))
  const glob = '**/*.stories.{tsx,jsx,ts,js,html}'
  const stories = [...new Bun.Glob(glob).scanSync({ cwd: workspace, onlyFiles: true })].some((path) => !path.includes('node_modules/'))
  return [...fromScripts, ...fromTools, ...(stories ? [{ name: 'stories', tier: 2, stories: glob } as const] : [])]
}

function textOf(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** Returns the text of a file that names these checks. */
export function checksText(specs: readonly CheckSpec[]): string {
  const tables = specs.map(({ name, command, stories }) => {
    const [field, value] = command === undefined ? ['stories', stories] : ['command', command]
    return `[checks.${JSON.stringify(name).slice(1, -1)}]\n${field} = ${JSON.stringify(value)}\n`
  })
  return `# What must pass before work counts as done; see docs/checks.md.\n\n${tables.join('\n')}`
}
