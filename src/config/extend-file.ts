/** Adds providers to an existing config file: replaces it atomically, follows symbolic links, and keeps its owner and mode. */

import { chmodSync, chownSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type Extension, extendConfig, providerTable, type Wanted } from './extend.ts'
import { anyVariable, type Proposal, proposeProviders } from './known-providers.ts'
import { type LoadInput, loadConfig } from './load.ts'
import { type FileRead, readConfigFile } from './text/read-toml-file.ts'

export type ExtendInput = Omit<LoadInput, 'flags' | 'trusted' | 'readFile'> & Partial<Wanted>

export type Extended = { readonly state: 'kept' | 'extended' /** What was added, or why nothing was added. */; readonly note: string }

/** Expects an existing, valid file. @throws Error with an errno when the file cannot be replaced; its content is then unchanged */
export function extendFile(path: string, input: ExtendInput): Extended {
  const read = readConfigFile(path)
  if (read.state !== 'text') return { state: 'kept', note: 'it cannot be read any more' }
  const wanted = { proposals: input.proposals ?? proposeProviders(input.env), ...(input.choice ? { choice: input.choice } : {}) }
  const extension = extendConfig(read.text, wanted)
  if (extension.text === read.text) return { state: 'kept', note: nothingToAdd(extension, wanted, input) }
  if (!isValid(path, extension.text, input)) return { state: 'kept', note: byHand(extension.added) }
  return replaceFile(path, read.text, extension.text)
    ? { state: 'extended', note: whatChanged(extension, input) }
    : { state: 'kept', note: 'nothing was added, because somebody else changed it meanwhile; run init again' }
}

function whatChanged({ added, chosen }: Extension, input: ExtendInput): string {
  const tables = added.map(({ name, because }) => `added provider ${name}${because === '' ? '' : ` (${because} is set)`}`)
  const by = chosen === undefined ? `default_provider stays "${defaultIn(input)}"` : `default_provider is now "${chosen}"`
  return [...tables, by].join(', ')
}

function nothingToAdd({ clashing }: Extension, { proposals }: Wanted, input: ExtendInput): string {
  const why = clashing.map(({ name, because }) => `${because} is set, but [providers.models.${name}] is yours and does not read it`)
  const none = proposals.length === 0 ? [`none of ${anyVariable} is set`] : why
  return ['nothing to add', ...none, `default_provider is "${defaultIn(input)}"`].join('; ')
}

/** TOML forbids further tables after `providers = { models = { … } }`. */
function byHand(added: readonly Proposal[]): string {
  const lines = added.flatMap((proposal) => ['', ...providerTable(proposal)])
  return `nothing was added, because the providers stand in an inline table; add by hand:\n${lines.join('\n')}\n`
}

function isValid(path: string, text: string, input: ExtendInput): boolean {
  const draft: FileRead = { state: 'text', text, worldWritable: false }
  const readFile = (file: string) => (file === path ? draft : readConfigFile(file))
  return loadConfig({ ...input, trusted: () => false, readFile }).ok
}

function defaultIn(input: ExtendInput): string {
  const loaded = loadConfig({ ...input, trusted: () => false })
  return loaded.ok ? loaded.config.defaultProvider : 'local'
}

/** @returns false when the file no longer contains `before`. */
function replaceFile(path: string, before: string, text: string): boolean {
  const real = realpathSync(path)
  const { mode, uid, gid } = statSync(real)
  const draft = `${real}.${crypto.randomUUID()}`
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600, flush: true })
    chmodSync(draft, mode & 0o777)
    if (process.getuid?.() === 0) chownSync(draft, uid, gid)
    const now = readConfigFile(path)
    if (now.state !== 'text' || now.text !== before) return false
    renameSync(draft, real)
    return true
  } finally {
    rmSync(draft, { force: true })
  }
}
