/** Keeps what the texts of a project say in a file, so that the next process reads only what has changed since. */

import { readFileSync } from 'node:fs'
import { attempt } from '../../kit/errors.ts'
import { replaceFile } from '../../kit/files.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { createImportReader, isCode, type ReadImports } from './read-imports.ts'

/** Depends on the text of a file alone. */
type TextFacts = ReadImports & { readonly lines: number }
type KeptFacts = { readonly stamp: string; readonly facts: TextFacts }

export type FactCache = {
  /** Calls `read` only when the file has another stamp than before; without a stamp always. `read` returns undefined for what is not a text. */
  of(path: string, stamp: string | undefined, read: () => string | undefined): TextFacts
  /** Writes the file when many texts were read. Never throws: without it the next process reads them again. */
  save(): void
}

/** Raise it when other facts are read of the same text. */
const version = 1
/** The number of texts that are read as fast as the file is written. */
const fewTexts = 16
const mostKept = 100_000

/** Without a file, nothing is kept for the next process. A damaged one counts as empty. */
export function createFactCache(file?: string): FactCache {
  const read = createImportReader()
  const known = file === undefined ? new Map<string, KeptFacts>() : keptIn(file)
  let texts = 0

  function factsOf(path: string, text: string | undefined): TextFacts {
    if (text === undefined) return { lines: 0, imports: [], ...(isCode(path) && { problem: 'is not a text of at most a megabyte' }) }
    return { ...read(path, text), lines: text.split('\n').length - (text.endsWith('\n') || text === '' ? 1 : 0) }
  }

  return {
    of(path, stamp, readText) {
      const kept = known.get(path)
      if (kept && kept.stamp === stamp) return kept.facts
      const facts = factsOf(path, readText())
      if (stamp === undefined) return facts
      texts += 1
      known.set(path, { stamp, facts })
      return facts
    },
    save() {
      if (file === undefined || texts < fewTexts) return
      texts = 0
      attempt(() => replaceFile(file, JSON.stringify({ version, files: [...known].slice(-mostKept) })))
    },
  }
}

function keptIn(file: string): Map<string, KeptFacts> {
  const value = parseJson(attempt(() => readFileSync(file, 'utf8')) ?? '')
  const files = isObject(value) && value.version === version && Array.isArray(value.files) ? value.files : []
  return new Map(files.filter(([path, kept]) => typeof path === 'string' && Array.isArray(kept?.facts?.imports)))
}
