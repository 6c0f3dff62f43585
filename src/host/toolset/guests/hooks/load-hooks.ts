/** Loads hooks: `hooks/*.toml` of the home and, in a trusted folder, `.braidclaw/hooks/*.toml` and Claude Code's settings. */

import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode, explainErrno, readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { readToml } from '../../../../config/text/toml.ts'
import { createTrust } from '../../../../config/trust.ts'
import { isObject, parseJson } from '../../../../kit/json.ts'
import { didYouMean, quote, visible } from '../../../../kit/text.ts'
import { parseCondition } from '../../../../runtime/rules/condition.ts'
import { createReport, knownKeys } from '../../../../runtime/rules/problem.ts'
import { quoteText } from '../../../../security/command/syntax/quote.ts'
import type { HookSetup } from '../../../setup/setup.ts'
import { realFolder } from '../../../setup/workspace-folder.ts'
import { approvedPlugins } from '../../tool-selection.ts'
import { manifestName } from '../plugins/manifest.ts'
import { whyNotOffered } from '../plugins/plugin-tools.ts'
import { openPlugins } from '../plugins/plugins.ts'
import { claudeHooks } from './claude-hooks.ts'
import { type Hook, hookEvents, type LoadedHooks } from './hook.ts'

/** Never throws for what stands in files. */
export function loadHooks({ config, paths, context }: HookSetup): LoadedHooks {
  const { workspaceDir, hooks: settings } = config
  const around = { workspace: realFolder(workspaceDir), home: context.env.HOME || '/', timeoutS: settings.timeoutS }
  const project = join(workspaceDir, '.braidclaw')
  const given = [
    ...(realFolder(project) === realFolder(paths.home) ? [] : readFolder(join(project, 'hooks'), { ...around, isOwn: false })),
    ...(settings.claudeCode ? [claudeHooks(around.workspace, settings.timeoutS)] : []),
  ]
  const isTrusted = createTrust(paths.trustedFolders).isTrusted(workspaceDir)
  return joined([
    ...readFolder(join(paths.home, 'hooks'), { ...around, isOwn: true }),
    ...pluginHooks(paths.home, around),
    ...(isTrusted ? given : ignored(given, workspaceDir)),
  ])
}

/** Reads the hooks of approved plugins, which run from the private copy. A plugin that changed loses them, and that is said. */
function pluginHooks(home: string, around: Omit<HookFolder, 'isOwn'>): readonly LoadedHooks[] {
  if (!existsSync(approvedPlugins(home))) return []
  const plugins = openPlugins(home)
  return plugins.list('enabled').map((plugin): LoadedHooks => {
    if (plugin.state === 'broken' || (plugin.state !== 'approved' && plugin.manifest.hooks.length > 0))
      return { ...nothing, notices: [`no hook of the plugin ${visible(plugin.name)} runs: ${whyNotOffered(plugin)}`] }
    const { name, manifest } = plugin
    if (manifest.hooks.length === 0) return nothing
    const folder = plugins.copyOf(plugin.folder, plugin.files)
    const problems: string[] = []
    const hooks = manifest.hooks.flatMap(({ event, command, match }) => {
      const data = { on: [event], run: `exec ${quoteText(join(folder, command))}`, tools: match === undefined ? [] : [match] }
      return hooksOf(data, join(folder, manifestName), { ...around, isOwn: false, problems, name: `plugin.${name}` })
    })
    return { ...nothing, problems, hooks }
  })
}

const nothing: LoadedHooks = { hooks: [], notices: [], problems: [] }

function joined(parts: readonly LoadedHooks[]): LoadedHooks {
  const all = <Key extends keyof LoadedHooks>(key: Key) => parts.flatMap((part): readonly LoadedHooks[Key][number][] => part[key])
  return { hooks: all('hooks'), notices: all('notices'), problems: all('problems') }
}

function ignored(given: readonly LoadedHooks[], workspace: string): readonly LoadedHooks[] {
  const { hooks, problems } = joined(given)
  if (hooks.length + problems.length === 0) return []
  const how = `Read them, then trust the folder with: braidclaw trust ${quoteText(workspace)}`
  return [{ ...nothing, notices: [`the hooks of ${workspace} do not run: this folder is not trusted. ${how}`] }]
}

type HookFolder = { readonly workspace: string; readonly home: string; readonly timeoutS: number; readonly isOwn: boolean }

/** Reads the files that end in .toml, in the order of their names; their programs may lie beside them. */
function readFolder(folder: string, around: HookFolder): readonly LoadedHooks[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith('.toml') && !name.startsWith('.'))
    return names.sort().map((name) => readHook(join(folder, name), around))
  } catch (error) {
    const code = errorCode(error)
    return code === 'ENOENT' ? [] : [{ ...nothing, problems: [`${folder} cannot be read: ${explainErrno(code)}`] }]
  }
}

function readHook(file: string, around: HookFolder): LoadedHooks {
  const read = readConfigFile(file)
  if (read.state !== 'text') return { ...nothing, problems: [`${file} ${read.state === 'missing' ? 'does not exist' : read.why}`] }
  if (read.worldWritable) return { ...nothing, problems: [`every user of this machine may change ${file}; run: chmod o-w ${file}`] }
  const toml = readToml(read.text)
  const name = `${around.isOwn ? '' : 'project.'}${file.slice(file.lastIndexOf('/') + 1, -'.toml'.length)}`
  const problems = toml.problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`)
  const hooks = problems.length > 0 ? [] : hooksOf(toml.data, file, { ...around, problems, name })
  return { ...nothing, problems, hooks: problems.length > 0 ? [] : hooks }
}

const keys = ['on', 'run', 'tools', 'paths', 'timeout_s', 'sandbox', 'write']
const isTexts = (given: unknown): given is string[] => Array.isArray(given) && given.every((one) => typeof one === 'string')

type HookPlace = HookFolder & { readonly problems: string[]; readonly name: string }
type Data = { readonly [key: string]: unknown }

function hooksOf(data: Data, file: string, { workspace, home, timeoutS, isOwn, problems, name }: HookPlace): Hook[] {
  const { on, run, tools = [], paths = [], timeout_s: seconds = timeoutS, sandbox = true, write = false } = data
  const report = createReport(problems, file)
  const need = (key: string, holds: boolean, says: string) => holds || report.at(key).say(`${says}; got ${quote(data[key])}`)
  knownKeys(data, keys, report)
  const wanted: readonly string[] = isTexts(on) ? on : []
  const strange = wanted.find((event) => !hookEvents.some((one) => one === event))
  const near = strange === undefined ? '' : didYouMean(strange, hookEvents)
  need('on', wanted.length > 0 && strange === undefined, `must be a list of events: ${hookEvents.join(', ')}${near}`)
  need('run', typeof run === 'string' && run.trim() !== '', 'must be a command line for /bin/sh')
  need('timeout_s', typeof seconds === 'number' && seconds >= 0.01 && seconds <= 600, 'must be a number of seconds from 0.01 to 600')
  need('tools', isTexts(tools), 'must be a list of patterns, such as ["file_*"]')
  need('paths', isTexts(paths), 'must be a list of patterns, such as ["src/**"]')
  need('sandbox', sandbox === true || (sandbox === false && isOwn), 'must be true or, in your own home only, false')
  const mayWrite = sandbox === true && wanted.every((event) => event === 'after_tool')
  need(
    'write',
    write === false || (write === true && mayWrite),
    'must be true or false, and true only in the sandbox with on = ["after_tool"]',
  )
  const pattern = (key: string, kind: string, given: unknown) => {
    const globs = isTexts(given) ? given.map((one) => ({ [kind]: one })) : []
    return globs.length === 0 ? undefined : parseCondition(globs, report.at(key), { workspace, home })
  }
  const [byTool, byPath] = [pattern('tools', 'glob', tools), pattern('paths', 'path', paths)]
  return hookEvents
    .filter((event) => wanted.includes(event))
    .map((event) => ({
      ...{ name, file, event, run: String(run), timeoutS: Number(seconds), sandbox: sandbox === true, write: write === true },
      matches: ({ call, paths = [] }) => (byTool?.holds(call?.name) ?? true) && (byPath?.holds([...paths]) ?? true),
      strict: true,
      env: { BRAIDCLAW_HOOK_DIR: dirname(file) },
      input: ({ call, paths, facts }, { dryRun, ...base }) => ({
        ...{ event, hook: name, ...base, dry_run: dryRun },
        ...(call ? { tool: call.name, input: call.input } : {}),
        ...(paths ? { paths: [...paths] } : {}),
        ...facts,
      }),
      answer,
    }))
}

const answerKeys = ['verdict', 'reason', 'context']

/** Reads the answer of a hook of ours: nothing, or one object. Everything else is a failure, and so is a permission. */
const answer: Hook['answer'] = ({ code, stdout, stderr }) => {
  if (code !== 0) return { failed: `it ended with exit code ${code}: ${stderr.trim() || 'no message on stderr'}` }
  if (stdout.trim() === '') return {}
  const given = parseJson(stdout)
  if (!isObject(given)) return { failed: `it printed ${quote(stdout.slice(0, 100))}, which is not one JSON object` }
  const { verdict, reason, context } = given
  const strange = Object.entries(given).find(([key, value]) => !answerKeys.includes(key) || typeof value !== 'string')
  if (strange)
    return { failed: `its answer has ${quote(strange[0])}: ${quote(strange[1])}; allowed are texts for ${answerKeys.join(', ')}` }
  if (verdict === undefined || verdict === 'veto' || verdict === 'ask')
    return { verdict, reason: String(reason ?? ''), context: String(context ?? '') }
  return { failed: `its verdict is ${quote(verdict)}; allowed: "veto", "ask". A hook cannot permit anything` }
}
