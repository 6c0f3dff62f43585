/** Implements `login | logout`: they store, replace, list and remove the keys of providers in the keys file of the home. */

import type { CliContext } from '../../../channels/terminal/context.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { isWireProvider } from '../../../config/config.ts'
import { isKey, isKeyName, readKeys } from '../../../config/keys-file.ts'
import { knownNames, knownProvider } from '../../../config/known-providers.ts'
import { homePaths } from '../../../config/paths.ts'
import { keepKey } from '../../../config/text/write-files.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { errorText } from '../../../kit/errors.ts'
import { didYouMean, quote } from '../../../kit/text.ts'
import { openLibc } from '../../../workspace/changes/tree/libc.ts'
import { createTurns } from '../../../workspace/changes/turns.ts'
import { type Arguments, type Complete, command } from '../../args/command.ts'
import { jsonFlag } from '../../args/turn-flags.ts'
import { commandError, usageError } from '../../exit.ts'
import { askHidden, createPrompts, isExported } from '../../onboard/questions.ts'
import { printList } from '../../print-list.ts'

const about = 'A provider of the configuration, or one that needs no table (docs/models.md)'
const complete: Complete = async (context) => keyRows(context).map(({ provider }) => provider)
const args = { provider: { type: 'text', optional: true, about, complete } } as const satisfies Arguments

export const login = command({
  flags: {
    stdin: { type: 'boolean', about: 'Read the key from stdin' },
    list: { type: 'boolean', about: 'List the providers that need a key, and where it comes from; never the key' },
    ...jsonFlag,
  },
  args,
  examples: [
    ['openai', 'asks for the key and does not show it'],
    ['anthropic --stdin < key.txt', 'for scripts'],
    ['--list', 'which keys are there'],
  ],
  exits: [130],
  async run(context, { stdin = false, list = false, json = false }, { provider }) {
    if (list) return printKeys(context, json)
    const { provider: of, variable: name } = await rowFor(context, provider)
    if (!isKeyName(name))
      throw usageError(`${of} reads its key from ${name}; only names that end in _KEY or _TOKEN can be stored, so export it`)
    if (!stdin && !(isTerminal(0) && isTerminal(1)))
      throw usageError('login needs a terminal, where it asks for the key; in scripts use --stdin')
    const value = stdin ? (await Bun.stdin.text()).trim() : await askHidden(createPrompts(context.process.stdout))
    if (!isKey(value)) throw usageError('stdin holds no key; a key is one word, without spaces and quotes')
    await storeKey(context, { name, value })
    const says = `the key of ${of} is kept in ${homePaths(context.home).keys}`
    context.process.stdout.write(`${json ? JSON.stringify({ provider: of, variable: name, stored: true }) : says}\n`)
    if (isExported(name)) context.process.stderr.write(`note: ${name} is set in the environment and counts more\n`)
  },
})

export const logout = command({
  flags: jsonFlag,
  args,
  examples: [['openai', 'removes the stored key']],
  exits: [130],
  async run(context, { json = false }, { provider }) {
    const { provider: of, variable: name, stored, environment } = await rowFor(context, provider, true)
    if (!stored && !environment) throw commandError(`no key of ${of} is stored; see: braidclaw login --list`)
    if (stored) await storeKey(context, { name })
    const says = stored ? `the key of ${of} is removed` : `no key of ${of} is stored`
    context.process.stdout.write(`${json ? JSON.stringify({ provider: of, variable: name, stored: false }) : says}\n`)
    if (environment)
      context.process.stderr.write(`note: ${name} is still set in the environment, so ${of} keeps a key; run: unset ${name}\n`)
  },
})

/** Stores a key, or removes it, while no other process of this home changes the file. @throws CliExit 1 when the file cannot be written */
export async function storeKey({ home }: CliContext, { name, value }: { readonly name: string; readonly value?: string }): Promise<void> {
  const stored = createTurns(home, openLibc).take(async () => keepKey(homePaths(home).keys, name, value))
  await stored.catch((error: unknown) => Promise.reject(commandError(`the key cannot be stored: ${errorText(error)}`)))
}

type KeyRow = { readonly provider: string; readonly variable: string; readonly stored: boolean; readonly environment: boolean }

/** Returns the providers that read a key, and under their own names the stored keys that no provider reads. */
function keyRows(context: CliContext): readonly KeyRow[] {
  const { config, paths } = loadSetup(context)
  const { keys } = readKeys(paths.keys)
  const known = knownNames.flatMap((name) => knownProvider(name, {}) ?? [])
  const configured = Object.values(config.providers.models).filter(isWireProvider)
  const variables = new Map([...known, ...configured].map(({ name, apiKeyEnv }) => [name, apiKeyEnv]))
  const read = [...variables.values()]
  for (const name of Object.keys(keys)) if (!read.includes(name)) variables.set(name, name)
  return [...variables].flatMap(([provider, variable]) =>
    variable ? [{ provider, variable, stored: Object.hasOwn(keys, variable), environment: isExported(variable) }] : [],
  )
}

async function rowFor(context: CliContext, wanted: string | undefined, onlyStored = false): Promise<KeyRow> {
  const rows = keyRows(context)
  const names = rows.map(({ provider }) => provider)
  const found = rows.find(({ provider }) => provider === wanted)
  if (found) return found
  if (wanted !== undefined && knownProvider(wanted, {})) throw usageError(`${wanted} needs no key`)
  const there = `; there are: ${names.join(', ')}`
  if (wanted !== undefined) throw usageError(`no provider ${quote(wanted)} reads a key${didYouMean(wanted, names) || there}`)
  const choices = rows.flatMap(({ provider: value, stored }) => (stored || !onlyStored ? [{ value, label: value }] : []))
  if (choices.length === 0) throw usageError('no key is stored')
  if (!isTerminal(0) || !isTerminal(1)) throw usageError(`name a provider: ${choices.map(({ value }) => value).join(', ')}`)
  return rowFor(context, await createPrompts(context.process.stdout).pick('Of which provider? (type to search)', choices))
}

function printKeys(context: CliContext, json: boolean): void {
  const rows = keyRows(context)
  const where = ({ stored, environment }: KeyRow) =>
    environment ? `set in the environment${stored ? ', which counts more than the stored one' : ''}` : stored ? 'stored' : 'not set'
  const lines = rows.map((row) => `${row.provider.padEnd(20)} ${row.variable.padEnd(24)} ${where(row)}`)
  printList(context, { items: rows, json, lines, none: 'no provider needs a key' })
}
