/** Reads manifest.toml, in which a plugin says what it offers and what it needs, and names every problem by its line. */

import { readTables, type TableReader } from '../../../../config/text/table-reader.ts'
import { attempt } from '../../../../kit/errors.ts'
import { canonical, isJsonObject, type JsonObject, parseJson } from '../../../../kit/json.ts'
import { forms } from '../../../../kit/settings.ts'
import { didYouMean } from '../../../../kit/text.ts'
import type { ToolSpec } from '../../../../runtime/port.ts'
import { parseDescription } from '../../../../tools/executable/description.ts'

export const manifestName = 'manifest.toml'

const capabilities = ['tool', 'channel', 'provider', 'hook'] as const

/** The access of a plugin to the workspace. */
const fileAccess = ['none', 'read', 'write'] as const

/** `command` is a file of the plugin; absent: the process of the plugin answers the calls. */
type PluginTool = { readonly spec: ToolSpec; readonly command?: string }

/** `match` is what the hook is limited to, in the words of the hooks. */
type PluginHook = { readonly event: string; readonly command: string; readonly match?: string }

/** A call, and the output that it must have. */
type PluginTest = { readonly tool: string; readonly input: JsonObject; readonly output: string }

type Permissions = {
  readonly files: (typeof fileAccess)[number]
  readonly hosts: readonly string[]
  /** Names of environment variables that it receives. */
  readonly variables: readonly string[]
}

export type PluginManifest = {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly capabilities: readonly (typeof capabilities)[number][]
  readonly tools: readonly PluginTool[]
  readonly hooks: readonly PluginHook[]
  readonly tests: readonly PluginTest[]
  /** A program that stays and answers lines of JSON-RPC. */
  readonly process?: string
  readonly permissions: Permissions
}

type ReadManifest = { readonly ok: true; readonly manifest: PluginManifest } | { readonly ok: false; readonly problems: readonly string[] }

export function isPluginName(name: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,63}$/.test(name)
}

/** Never throws. Each problem begins with the line. */
export function readManifest(text: string): ReadManifest {
  const { value, problems } = readTables(text, manifestIn)
  return problems.length === 0 ? { ok: true, manifest: value } : { ok: false, problems }
}

function manifestIn(root: TableReader): PluginManifest {
  const name = root.text('name')
  if (name !== '' && !isPluginName(name)) root.wrong('name', 'is made of small letters, digits and "-", 64 at most')
  const version = root.text('version')
  if (version !== '' && !/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/.test(version)) root.wrong('version', 'is a version such as "0.1.0"')
  const process = pathIn(root, 'process', '')
  const tools = root.list('tools').map((table) => toolOf(table, process))
  const manifest: PluginManifest = {
    name,
    version,
    description: root.text('description', ''),
    capabilities: wordsIn(root, 'capabilities', capabilities),
    tools,
    hooks: root.list('hooks').map(hookOf),
    tests: root.list('tests').map((table) => testOf(table, tools)),
    ...(process === '' ? {} : { process }),
    permissions: permissionsOf(root.table('permissions')),
  }
  for (const [at, why] of contradictions(manifest)) root.wrong(at, why)
  return manifest
}

function testOf(table: TableReader, tools: readonly PluginTool[]): PluginTest {
  const [tool, input, output] = [table.text('tool'), table.raw('arguments'), table.text('output')]
  const near = didYouMean(
    tool,
    tools.map(({ spec }) => spec.name),
  )
  if (!tools.some(({ spec }) => spec.name === tool)) table.wrong('tool', `is not a tool of this plugin${near}`)
  if (!isJsonObject(input)) table.wrong('arguments', 'is a table')
  table.end()
  return { tool, input: isJsonObject(input) ? input : {}, output }
}

function contradictions({ capabilities, tools, hooks, process, permissions }: PluginManifest): readonly (readonly [string, string])[] {
  const names = tools.map(({ spec }) => spec.name)
  const twice = names.filter((name, at) => names.indexOf(name) < at)
  const uses = { tool: tools.length > 0, hook: hooks.length > 0 } as const
  const wrong = (['tool', 'hook'] as const).filter((one) => uses[one] !== capabilities.includes(one))
  return [
    ...wrong.map((one) => ['capabilities', `and [[${one}s]] do not fit: name "${one}" and write [[${one}s]], or neither`] as const),
    ...(process === undefined && capabilities.some((one) => one === 'channel' || one === 'provider')
      ? [['process', 'is missing: it is the program that brings messages or answers as a model'] as const]
      : []),
    ...twice.map((name) => ['tools', `has two tools "${name}"; rename one`] as const),
    ...(hooks.length > 0 && permissions.files === 'none'
      ? [['permissions.files', 'is "read" for a plugin with hooks, because a hook runs in the workspace'] as const]
      : []),
    // Changes belong to the call that made them, and a process serves many calls.
    ...(process !== undefined && permissions.files === 'write'
      ? [['permissions.files', 'is "none" or "read" for a plugin with a process; a tool with a command of its own may write'] as const]
      : []),
  ]
}

function wordsIn<const T extends string>(table: TableReader, name: string, known: readonly T[]): readonly T[] {
  const given = table.texts(name)
  const unknown = given.find((word) => !known.some((one) => one === word))
  if (unknown !== undefined) table.wrong(name, `has ${JSON.stringify(unknown)}; there are ${known.join(', ')}${didYouMean(unknown, known)}`)
  return known.filter((word) => given.includes(word))
}

/** Reads the path of a file of the plugin. */
function pathIn(table: TableReader, name: string, fallback?: string): string {
  const path = table.text(name, fallback).replace(/^\.\//, '')
  if (path !== '' && (path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '')))
    table.wrong(name, `is the path of a file of the plugin, such as "./run"; got ${JSON.stringify(path)}`)
  return path
}

function toolOf(table: TableReader, process: string): PluginTool {
  const [name, description, command] = [table.text('name'), table.text('description'), pathIn(table, 'command', '')]
  const schema = table.raw('schema')
  const json = attempt(() => canonical(schema ?? null))
  if (json === undefined) table.wrong('schema', 'holds what JSON has not, such as a date')
  const parsed = parseDescription(JSON.stringify({ name, description, parameters: parseJson(json ?? '{"type":"object"}') }))
  if (!parsed.ok) table.wrong('', parsed.why.replace('"parameters"', '"schema"'))
  if (command === '' && process === '') table.wrong('command', 'is missing; it is the file to run, or the plugin has a process')
  table.end()
  const spec = parsed.ok ? parsed.spec : { name, description, parameters: { type: 'object' as const } }
  return { spec, ...(command === '' ? {} : { command }) }
}

function hookOf(table: TableReader): PluginHook {
  const [event, command, match] = [table.text('event'), pathIn(table, 'command'), table.text('match', '')]
  table.end()
  return { event, command, ...(match === '' ? {} : { match }) }
}

function permissionsOf(table: TableReader): Permissions {
  const files = table.oneOf('files', fileAccess, 'none')
  const [hosts, variables] = [table.texts('hosts', []), table.texts('variables', [])]
  const check = (name: string, values: readonly string[], form: 'domain' | 'variable') => {
    const odd = values.find((one) => one.startsWith('@') || !new RegExp(forms[form].pattern).test(one))
    const says = form === 'domain' ? 'host names such as "api.example.org"' : 'names of environment variables such as "API_KEY"'
    if (odd !== undefined) table.wrong(name, `are ${says}; got ${JSON.stringify(odd)}`)
  }
  check('hosts', hosts, 'domain')
  check('variables', variables, 'variable')
  table.end()
  return { files, hosts, variables }
}
