/** Implements `trust` and `config`: get, set, unset, edit, show, validate, schema. Changes keep comments and order. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AskPerson } from '../../../channels/terminal/approval-prompt.ts'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { describeProblem } from '../../../config/config.ts'
import { defaultConfigToml } from '../../../config/config-text.ts'
import { loadWith } from '../../../config/init.ts'
import { fromText } from '../../../config/layers/environment.ts'
import { secret } from '../../../config/layers/file.ts'
import { configSchema } from '../../../config/output/json-schema.ts'
import { programIn, showConfig, showVariables, valueAt } from '../../../config/output/show.ts'
import { homePaths } from '../../../config/paths.ts'
import { leafOf, providerPrefix, rowsOfKind, type Setting, settingOf, tableOf } from '../../../config/table.ts'
import { check } from '../../../config/text/check.ts'
import { differsOnlyIn, setInToml, unsetInToml } from '../../../config/text/edit-toml.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { readToml, tomlValue } from '../../../config/text/toml.ts'
import { writeConfig } from '../../../config/text/write-files.ts'
import { createTrust } from '../../../config/trust.ts'
import { validateConfig } from '../../../config/validate.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { builtInNames } from '../../../host/toolset/tool-selection.ts'
import { attempt } from '../../../kit/errors.ts'
import { isObject } from '../../../kit/json.ts'
import { count, didYouMean, quote } from '../../../kit/text.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { type Complete, command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'

/** Lists and changes the folders whose project configuration counts. */
export const trust = command({
  flags: {
    remove: { type: 'boolean', about: 'No longer trust the folder' },
    list: { type: 'boolean', about: 'List the trusted folders' },
    ...jsonFlag,
  },
  args: { dir: { type: 'text', optional: true, about: 'Folder (default: this one)' } },
  examples: [
    ['', 'trust this folder'],
    ['--remove ~/project', 'no longer'],
    ['--list', 'whom you trust'],
  ],
  async run(context, { remove = false, list = false, json = false }, { dir: folder }) {
    const book = createTrust(homePaths(context.home).trustedFolders)
    if (list) {
      const { folders, notices } = book.list()
      printList(context, { items: folders, json, lines: folders, none: 'no folder is trusted; to trust this one: braidclaw trust' })
      for (const notice of notices) context.process.stderr.write(`note: ${notice}\n`)
      return
    }
    const place = resolve(context.cwd, folder ?? '.')
    // Two processes that write the list at once would undo each other's change.
    const changed = await createTurns(context.home, openLibc).take(async () => (remove ? book.remove(place) : book.add(place)))
    if (!changed.ok) throw commandError(`${changed.why}`)
    const verb = remove ? (changed.changed ? 'no longer trusted' : 'was not trusted') : changed.changed ? 'trusted' : 'was trusted already'
    context.process.stdout.write(json ? `${JSON.stringify(changed)}\n` : `${changed.folder}: ${verb}\n`)
  },
})

export const show = command({
  flags: {
    origin: { type: 'boolean', about: 'Say where each value comes from' },
    env: { type: 'boolean', about: 'Print NAME=value lines that a shell can read: eval "$(braidclaw config --env)"' },
    ...workspaceFlag,
    ...jsonFlag,
  },
  examples: [
    ['--origin', 'and which file, variable or flag said so'],
    ['--json', 'for scripts'],
    ['--env', 'NAME=value lines for a shell'],
  ],
  run(context, { origin = false, env = false, json = false, workspace }) {
    if (env && (origin || json)) throw usageError('--env prints a format of its own; leave --origin and --json out')
    const { config, origins, redactor, paths } = loadSetup(context, { workspace })
    const { channels } = context
    if (env) return void context.process.stdout.data(showVariables(config, { home: paths.home, channels, redact: redactor.text }))
    context.process.stdout.write(redactor.text(showConfig(config, origins, { origin, json, channels })))
  },
})

export const validate = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'exit 0 when there is none']],
  run(context, { json = false, workspace }) {
    const { home, env, cwd, channels } = context
    const { config, trustedFolders } = homePaths(home)
    const trusted = (folder: string) => createTrust(trustedFolders).isTrusted(folder)
    const loaded = validateConfig({ home, env, cwd, channels, flags: { workspace }, trusted, tools: builtInNames })
    const { warnings } = loaded
    const { stdout, stderr } = context.process
    if (json) {
      stdout.write(`${context.redactor.text(JSON.stringify(loaded.ok ? { ok: true, file: loaded.file ?? null, warnings } : loaded))}\n`)
      if (loaded.ok) return
      throw new CliExit(exitCodes.error)
    }
    const notes = [...warnings.map(describeProblem), ...(loaded.ok ? loaded.notices : [])]
    stderr.write(notes.map((note) => `warning: ${note}\n`).join(''))
    if (!loaded.ok) {
      const lines = loaded.problems.map((problem) => `error: ${describeProblem(problem)}`)
      throw new CliExit(exitCodes.error, [...lines, `${count(lines.length, 'problem')} found`].join('\n'))
    }
    const program = programIn(loaded.origins)
    if (program) stdout.write(`${program} is valid\n`)
    stdout.write(loaded.file ? `${loaded.file} is valid\n` : `valid: no ${config} yet, the defaults hold\n`)
  },
})

export const schema = command({
  examples: [['> config.schema.json', 'for an editor']],
  run(context) {
    context.process.stdout.write(`${JSON.stringify(configSchema(context.channels), null, 2)}\n`)
  },
})

const complete: Complete = async (context) => {
  const models = attempt(() => loadSetup(context).config.providers.models) ?? {}
  const own = Object.values(models).flatMap(({ name, kind }) =>
    Object.keys(rowsOfKind(kind) ?? {}).map((leaf) => `${providerPrefix}${name}.${leaf}`),
  )
  return [...tableOf(context.channels).settings.flatMap(({ key }) => (key.includes('*') ? [] : key)), ...own]
}

const key = { type: 'text', about: 'A setting, such as limits.max_run_usd (docs/config.md)', complete } as const

export const get = command({
  flags: jsonFlag,
  args: { key },
  examples: [['default_model', 'exit 1 when it is not set']],
  run(context, { json = false }, { key: name }) {
    const { config, redactor } = loadSetup(context)
    knownSetting(context, name, valueAt(config, kindKey(name)))
    const value = valueAt(config, name)
    if (value === undefined) throw commandError(`${name} is not set`)
    const text = json || typeof value === 'object' ? JSON.stringify(value) : String(value)
    context.process.stdout.write(`${redactor.text(text)}\n`)
  },
})

export const set = command({
  flags: jsonFlag,
  args: {
    key,
    value: { type: 'text', about: 'Its value: text without quotes, a number, true, or a list "a,b"' },
    more: { type: 'text', about: 'More pairs of KEY VALUE, which are checked together', optional: true, many: true, complete },
  },
  examples: [
    ['limits.max_run_usd 0.50', 'a limit of money for each turn'],
    ['security.forbidden_commands "rm,dd" log.level info', 'two settings at once'],
  ],
  async run(context, { json = false }, { key: first, value, more = [] }) {
    const words = [first, value, ...more]
    if (words.length % 2 !== 0) throw usageError(`a value is missing after ${quote(words.at(-1))}`)
    const typed = new Map(words.flatMap((name, n) => (n % 2 === 0 ? [[name, words[n + 1] ?? ''] as const] : [])))
    await change(context, json, (text) => Array.from(typed.keys(), (name) => [name, tomlFor(context, { name, typed, text })]))
  },
})

export const unset = command({
  flags: jsonFlag,
  args: { key: { ...key, many: true } },
  examples: [['default_model', "then the provider's own model is asked"]],
  async run(context, { json = false }, { key: names }) {
    await change(context, json, (text) => {
      for (const name of names) knownSetting(context, name, valueIn(text, kindKey(name)))
      return names.map((name) => [name, undefined])
    })
  },
})

/** `toml` undefined: the key is removed. */
type Edit = readonly [key: string, toml: string | undefined]

/** Changes the file while no other process of this home does. @throws CliExit when the file is, or would be, wrong; it then stays as it is */
async function change(context: CliContext, json: boolean, editsOf: (text: string) => readonly Edit[]): Promise<void> {
  const path = homePaths(context.home).config
  const { edits, before, after } = await createTurns(context.home, openLibc).take(async () => {
    const read = readConfigFile(path)
    const before = read.state === 'text' ? read.text : ''
    const broken = read.state === 'unusable' ? [`${path} ${read.why}`] : problemsIn(context, before)
    if (broken.length > 0) throw commandError(`${broken.join('\nerror: ')}\ncorrect it first: braidclaw config edit`)
    const edits = editsOf(before)
    const after = edits.reduce((text, edit) => edited(path, text, edit), before)
    const wrong = problemsIn(context, after)
    if (wrong.length > 0) throw commandError(`${wrong.join('\nerror: ')}\n${path} stays as it is`)
    const isWritten = after === before || writeConfig(path, read.state === 'text' ? before : undefined, after)
    if (!isWritten) throw commandError(`${path}: another program changed it meanwhile; try again`)
    return { edits, before, after }
  })
  const { stdout, stderr } = context.process
  const values = Object.fromEntries(edits.map(([name, toml]) => [name, toml === undefined ? null : valueIn(`x = ${toml}`, 'x')]))
  if (json) return void stdout.write(`${JSON.stringify({ file: path, changed: after !== before, values })}\n`)
  const loaded = loadWith(path, after, context)
  for (const [name, toml] of edits) {
    stdout.write(toml === undefined ? `${name} is not set in ${path}\n` : `${name} = ${toml}\n`)
    const where = loaded.ok ? loaded.origins[name]?.where : undefined
    if (toml !== undefined && where !== undefined && where !== path) stderr.write(`note: ${where} sets ${name} too and counts more\n`)
  }
}

function edited(path: string, before: string, [name, value]: Edit): string {
  const after = value === undefined ? unsetInToml(before, name) : setInToml(before, name, value)
  if (differsOnlyIn(name, { before, after, value })) return after
  throw commandError(`${name} stands in an inline table of ${path}; change it with: braidclaw config edit`)
}

/** Returns the problems of the config file with this text, and leaves out what other sources, such as variables, have wrong. */
function problemsIn(context: CliContext, text: string): readonly string[] {
  const path = homePaths(context.home).config
  const loaded = loadWith(path, text, context)
  return loaded.ok ? [] : loaded.problems.filter(({ file }) => file === path).map(describeProblem)
}

type Typed = { readonly name: string; readonly typed: ReadonlyMap<string, string>; readonly text: string }

/** Converts what was typed to TOML, by the type of the setting. */
function tomlFor(context: CliContext, { name, typed, text }: Typed): string {
  const { home, env, cwd, redactor } = context
  const word = typed.get(name) ?? ''
  if (secret.test(leafOf(name).replaceAll('-', '_').toLowerCase()) || redactor.text(word) !== word)
    throw usageError(`${name}: secrets do not belong in the config file; store a key with: braidclaw login`)
  const setting = knownSetting(context, name, typed.get(kindKey(name)) ?? valueIn(text, kindKey(name)))
  const raw = ['map', 'table'].includes(setting.type) ? valueIn(`x = ${word}`, 'x') : fromText(setting, word)
  const { value, wrong } = check(setting, raw, { home, env, userHome: env.HOME ?? '/', base: cwd, typed: true })
  const hint = setting.type === 'text' && setting.form === 'variable' ? '; store a key with: braidclaw login' : ''
  if (wrong.length > 0) throw usageError(`${name}: ${wrong.join('; ')}${hint}`)
  // In a file a path is absolute; what a person wrote with "~" or "$" stays so.
  return tomlValue(setting.type === 'path' && !/^[~$/]/.test(word) ? value : raw)
}

/** Returns the key that says of which kind the provider of this key is. */
function kindKey(name: string): string {
  return name.replace(/[^.]+$/, 'kind')
}

function valueIn(text: string, name: string): unknown {
  const { data } = readToml(text)
  return name.split('.').reduce<unknown>((at, part) => (isObject(at) && Object.hasOwn(at, part) ? at[part] : undefined), data)
}

/** @throws CliExit 2 that says which keys there are, or which one was meant */
function knownSetting({ channels }: CliContext, name: string, kind: unknown): Setting {
  const table = tableOf(channels)
  const found = settingOf(table, name, typeof kind === 'string' ? kind : undefined)
  if (found) return found
  const keys = table.settings.map((setting) => setting.key)
  const below = keys.filter((each) => each.startsWith(`${name}.`)).map(leafOf)
  if (below.length > 0) throw usageError(`${name} is a section; in it there can be: ${below.join(', ')}`)
  const [same, ...others] = keys.filter((each) => leafOf(each) === leafOf(name))
  const near = same !== undefined && others.length === 0 ? `; did you mean "${same}"?` : didYouMean(name, keys)
  throw usageError(`unknown key ${quote(name)}${near || '; see: docs/config.md'}`)
}

export const edit = command({
  examples: [['', 'with VISUAL or EDITOR']],
  exits: [130],
  async run(context) {
    const path = homePaths(context.home).config
    const ask = terminalPrompt(context)
    if (ask === undefined) throw usageError('config edit opens an editor and needs a terminal; in scripts use "braidclaw config set"')
    const read = readConfigFile(path)
    if (read.state === 'unusable') throw commandError(`${path} ${read.why}`)
    const before = read.state === 'text' ? read.text : undefined
    const start = before ?? defaultConfigToml({ channels: context.channels, proposals: [] })
    const copy = `${path.replace(/\.toml$/, '')}.${process.pid}.edit.toml`
    mkdirSync(context.home, { recursive: true, mode: 0o700 })
    writeFileSync(copy, start, { flag: 'wx', mode: 0o600 })
    const after = await editUntilValid(context, copy, ask)
    const write = async () => after === start || writeConfig(path, before, after)
    if (!(await createTurns(context.home, openLibc).take(write)))
      throw commandError(`${path}: another program changed it meanwhile, so it stays as it is; your version is ${copy}`)
    rmSync(copy)
    context.process.stdout.write(`${path}: ${after === start ? 'nothing was changed' : 'changed'}\n`)
  },
})

/** Returns a text without problems. @throws CliExit when the editor fails, or the person gives up; the config file is then unchanged */
async function editUntilValid(context: CliContext, copy: string, ask: AskPerson): Promise<string> {
  for (;;) {
    const code = await ask.edit([copy])
    const read = readConfigFile(copy)
    if (code !== 0 || read.state !== 'text') {
      rmSync(copy, { force: true })
      const how = code === undefined ? 'could not be started or was killed' : `ended with ${code}`
      throw commandError(`the editor ${how}, so nothing was changed; VISUAL or EDITOR names it`)
    }
    const wrong = problemsIn(context, read.text)
    if (wrong.length === 0) return read.text
    for (const problem of wrong) context.process.stderr.write(`error: ${problem}\n`)
    const answer = await ask('Edit again? [Y/n] ')
    if (answer === undefined || /^\s*n/i.test(answer)) throw commandError(`nothing was changed; your version is ${copy}`)
  }
}
