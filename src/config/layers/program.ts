/** Reads the configuration that a project writes as a program, `braidclaw.config.ts` or `.plaited/config.ts`, as a layer of settings. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { realPlace } from '../../workspace/real-place.ts'
import { knownNames } from '../known-providers.ts'
import { settingOf } from '../table.ts'
import { readConfigFile } from '../text/read-toml-file.ts'
import { draftLayer, type Entries, type LayerContext, providerNames, put } from './entries.ts'
import type { ProgramResult } from './evaluate-program.ts'
import type { FileLayer } from './file.ts'
import { splitModel } from './model.ts'

/** `other` is the second of the two files, which does not count. */
type Project = { readonly folder: string; readonly file: string; readonly other: string | undefined } & {
  readonly toml: FileLayer & { readonly file?: string }
  readonly user: Entries
  readonly around: LayerContext
}

/** Adds the program's settings to those of config.toml, and wins over them. The folder is trusted. */
export function withProgram({ folder, file, other, toml, user, around }: Project): Project['toml'] {
  const { settings, notices, problems } = resultOf(file, folder, around)
  const draft = draftLayer()
  for (const [key, raw] of Object.entries(settings)) {
    const setting = settingOf(around.table, key)
    const where = { ...around, base: folder, typed: true }
    if (setting) put(draft, { setting, raw, where, origin: { source: 'project', where: file } })
  }
  const known = new Map([...user, ...toml.entries])
  const named = splitModel(draft.entries, () => [...providerNames(known), ...knownNames], known.get('default_provider')?.value)
  const both = other ? [`${other} is ignored: ${file} is there too; remove one of them`] : []
  return {
    ...toml,
    file: toml.file ?? file,
    entries: new Map([...toml.entries, ...named.entries]),
    problems: [...toml.problems, ...problems.map((problem) => ({ file, ...problem })), ...draft.problems, ...named.problems],
    notices: [...toml.notices, ...both, ...notices.map((notice) => `${file}: ${notice}`)],
  }
}

/** Returns what the evaluation of this text gave before, else evaluates it, some 0.1 s. */
function resultOf(file: string, folder: string, { home, env }: LayerContext): ProgramResult {
  const wrong = (message: string) => ({ settings: {}, notices: [], problems: [{ key: '', message }] })
  const read = readConfigFile(file)
  if (read.state !== 'text') return wrong(`this file ${read.state === 'unusable' ? read.why : 'was removed meanwhile'}`)
  const real = realPlace(file)
  if (!real.startsWith(`${realPlace(folder)}/`))
    return wrong(`this file is a link out of the folder, to ${real}; put the file itself there`)
  const asked = JSON.stringify({ source: read.text, env: { NODE_ENV: env.NODE_ENV } })
  const digest = sha256(`2 ${asked}`)
  const cache = join(home, 'run', `config-${sha256(`${file} ${env.NODE_ENV}`).slice(0, 32)}.json`)
  const kept = readConfigFile(cache)
  const known = kept.state === 'text' ? parseJson(kept.text) : undefined
  if (isObject(known) && known.digest === digest && isResult(known.result)) return known.result
  const { evaluateProgram }: typeof import('./evaluate-program.ts') = require('./evaluate-program.ts')
  const result = evaluateProgram(asked)
  if (result.problems.length === 0 && existsSync(home)) keep(cache, { digest, result })
  return result
}

function isResult(value: unknown): value is ProgramResult {
  return isObject(value) && isObject(value.settings) && Array.isArray(value.problems)
}

/** A home that cannot be written evaluates the file each time; so does a reader of a part of it. */
function keep(path: string, content: unknown): void {
  try {
    mkdirSync(dirname(path), { mode: 0o700, recursive: true })
    writeFileSync(path, JSON.stringify(content), { mode: 0o600 })
  } catch {}
}
