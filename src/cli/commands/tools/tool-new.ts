/** Implements `tool describe | new`: it shows executables as the gate will see them, and writes a template for a new one. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import { surveyNow } from '../../../host/toolset/executable-tools.ts'
import { builtInNames } from '../../../host/toolset/tool-selection.ts'
import { isToolName, nameRule } from '../../../tools/executable/description.ts'
import type { ExecutableSurvey } from '../../../tools/executable/executable-source.ts'
import { extensionOf, type TypeScriptRuntime, templateOf } from '../../../tools/executable/tool-template.ts'
import { command } from '../../args/command.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { jsonFlag, sandboxFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'

export const describe = command({
  flags: { ...sandboxFlag, ...workspaceFlag, ...jsonFlag },
  args: { path: { type: 'text', optional: true, about: 'Folder or executable (default: tools.dir)' } },
  examples: [['./tools', 'name, risk, parameters, and what is wrong with which']],
  async run(context, { workspace, sandbox = 'auto', json = false }, { path }) {
    const setup = loadSetup(context, { workspace })
    workspaceOf(setup)
    const at = path === undefined ? setup.config.tools.dir : resolve(context.cwd, path)
    const survey = await surveyNow(setup, { at, sandbox, askAgain: true })
    if (!survey.ok) throw commandError(`${survey.why}`)
    context.process.stdout.write(json ? asJson(survey) : asText(survey, at))
    if (survey.refused.length > 0) throw new CliExit(exitCodes.error)
  },
})

type Surveyed = Extract<ExecutableSurvey, { ok: true }>

function asJson({ tools, refused }: Surveyed): string {
  const rows = tools.map(({ name, description, parameters, risk, source, sha256 }) => ({
    name,
    description,
    parameters,
    risk,
    source,
    sha256,
  }))
  return `${JSON.stringify({ tools: rows, broken: refused })}\n`
}

function asText({ tools, refused }: Surveyed, at: string): string {
  if (tools.length + refused.length === 0) return `no executables in ${at}\n`
  const good = tools.map(({ name, description, parameters, risk, source }) => {
    const names = Object.keys(parameters.properties ?? {}).map((key) => (parameters.required?.includes(key) ? key : `[${key}]`))
    return `ok      ${name.padEnd(16)} ${risk.padEnd(7)} (${names.join(' ')}) ${description.split('\n')[0]} [${source}]`
  })
  const bad = refused.map(({ path, why }) => `broken  ${path}: ${why}`)
  return `${[...good, ...bad].join('\n')}\n`
}

export const create = command({
  flags: {
    lang: { type: 'choice', values: ['sh', 'python', 'ts'], about: 'Language of the template (default: sh)' },
    tools: { type: 'text', about: 'Folder to write it to (default: tools.dir)' },
  },
  args: { name: { type: 'text', about: 'Name of the tool' } },
  examples: [['weather --lang python', 'an executable in ~/.braidclaw/tools']],
  async run(context, { lang = 'sh', tools }, { name }) {
    const { config } = loadSetup(context)
    if (!isToolName(name)) throw usageError(`${JSON.stringify(name)} is not a valid tool name: ${nameRule}`)
    if (builtInNames.includes(name)) throw usageError(`"${name}" is a built-in tool; choose another name`)
    const folder = tools === undefined ? config.tools.dir : resolve(context.cwd, tools)
    const path = join(folder, `${name}${extensionOf[lang]}`)
    const runtime = lang === 'ts' ? typeScriptRuntime() : undefined
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    try {
      writeFileSync(path, templateOf(lang, name, runtime), { mode: 0o755, flag: 'wx' })
    } catch (error) {
      const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
      throw exists ? commandError(`${path} is there already; nothing was written`) : error
    }
    context.process.stdout.write(`${path}\n`)
    const missing = missingFor(lang, runtime)
    if (missing) context.process.stderr.write(`note: it does not run yet: ${missing}\n`)
    const describe = `braidclaw tool describe ${pasteable([folder])}`
    context.process.stderr.write(`look at it: ${describe}; offer it in every turn: tools.executables = ["${name}"]\n`)
  },
})

/** Tools find their interpreter only in the fixed system path, whatever PATH says. */
export function typeScriptRuntime(): TypeScriptRuntime | undefined {
  if (resolveExecutable('bun')) return 'bun'
  const node = resolveExecutable('node')
  const version = node ? Bun.spawnSync([node, '--version'], { env: {} }).stdout.toString() : ''
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version) ?? []).map(Number)
  return major > 22 || (major === 22 && minor >= 18) ? 'node' : undefined
}

/** Returns a sentence on what to install for a tool in this language. */
export function missingFor(lang: string, runtime: TypeScriptRuntime | undefined): string | undefined {
  if (lang === 'ts' && !runtime)
    return 'TypeScript needs bun, or Node 22.18 and later, in /usr/local/bin or /usr/bin; or write it with --lang sh or --lang python'
  if (lang === 'python' && !resolveExecutable('python3')) return 'python3 is not in /usr/local/bin or /usr/bin; install it'
  return lang === 'sh' && !resolveExecutable('jq') ? 'it reads its arguments with jq, which is not installed' : undefined
}
