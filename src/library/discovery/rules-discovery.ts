/** Finds a project's rules in three tiers: the root's file always, linked documents by intent, nested files by the path that is touched. */

import { join, posix, relative, resolve, sep } from 'node:path'
import type { Entry, Why } from '../../discovery/hybrid-index.ts'
import { fitInstruction, type InstructionText } from '../../discovery/instruction-room.ts'
import { documentEntry, type LinkedDocument, type linkedDocuments, readRules } from '../../discovery/linked-documents.ts'
import type { SkillMetadata } from '../../discovery/skill-files.ts'
import { openStoredIndex, type StoreOptions } from '../../discovery/stored-index.ts'
import { isInside, openTextFiles } from '../../discovery/text-files.ts'
import { instructionBytes, instructionNames } from '../../workspace/instruction-file.ts'

/** A link of a file to a document: `source` is the absolute path of that file, `relativePath` as it is written; lines count from 1. */
export type Reference = Readonly<Record<'displayText' | 'relativePath' | 'absolutePath' | 'source', string>> & {
  readonly lineNumber: number
}

/** `similarity` is that of the embedder, or of the features without one: 0 to 1. */
export type ReferenceMatch = { readonly reference: Reference; readonly similarity: number; readonly score: number; readonly why: Why }

type FolderEntry = Entry & { readonly skill?: SkillMetadata; readonly reference?: Reference }

const maxBytes = 1_048_576

/** Opens the part that skills and rules share; `sourceOf` returns the file of a name. */
export function openReferences(root: string, store: StoreOptions, sourceOf: (name: string) => string | undefined) {
  const index = openStoredIndex<FolderEntry>(store)
  const files = openTextFiles(root)
  const state: { references: readonly Reference[]; notices: readonly string[] } = { references: [], notices: [] }
  const find = (kind: string, intent: string, limit?: number) => index.search(intent, { limit, accept: (entry) => entry.kind === kind })
  return {
    files,
    find,
    replace({ found, again, notices }: ReturnType<typeof linkedDocuments>, entries: readonly FolderEntry[] = []): Promise<void> {
      const referenceOf = ({ path, headings: _, text: __, ...link }: LinkedDocument) => {
        return { ...link, absolutePath: join(root, path), source: join(root, link.source) }
      }
      Object.assign(state, { notices, references: [...found, ...again].map(referenceOf) })
      return index.replace([...entries, ...found.map((document) => ({ ...documentEntry(document), reference: referenceOf(document) }))])
    },
    stats: () => ({ totalReferences: state.references.length, vectorSearchEnabled: store.embedder !== undefined }),
    members: {
      async searchReferences(intent: string, { limit }: { readonly limit?: number } = {}): Promise<ReferenceMatch[]> {
        return (await find('rule', intent, limit)).map(({ entry, score, why }) => {
          return { reference: entry.reference as Reference, similarity: (why.embedding ?? why.features)?.score ?? 0, score, why }
        })
      },
      getReferences: (name: string): Reference[] => state.references.filter(({ source }) => source === sourceOf(name)),
      /** Returns at most 1 MiB; undefined when the document cannot be read any more, or is not one of those that were found. */
      async getReferenceContent({ absolutePath }: Pick<Reference, 'absolutePath'>): Promise<string | undefined> {
        const isKnown = state.references.some((reference) => reference.absolutePath === absolutePath)
        const read = isKnown ? files.readText(relative(root, absolutePath), { maxBytes }) : undefined
        return read?.ok ? read.text : undefined
      },
      /** Names what was left out or is not as it should be, by its path. */
      notices: (): readonly string[] => [...state.notices, ...index.notices()],
      async close(): Promise<void> {},
    },
  }
}

/** `rootDir` is the current folder unless given. */
export type RulesDiscoveryConfig = StoreOptions & { readonly rootDir?: string }

export type RulesDiscovery = Awaited<ReturnType<typeof createRulesDiscovery>>

/** Reads AGENTS.override.md, AGENTS.md or CLAUDE.md of the root and the folders below. @throws Error when `dbPath` is not one of our files */
export async function createRulesDiscovery({ rootDir = '.', ...config }: RulesDiscoveryConfig = {}) {
  const root = resolve(rootDir)
  const references = openReferences(root, config, (sourcePath) => resolve(root, sourcePath))
  const state: { rules: readonly InstructionText[] } = { rules: [] }

  async function refresh(): Promise<void> {
    const { rules, ...linked } = readRules(root, references.files, { names: instructionNames, maxBytes: instructionBytes })
    state.rules = rules
    await references.replace(linked)
  }

  /** Returns the texts of the files in these folders, which share the room of 32 KiB. */
  function textsIn(folders: readonly string[]): string[] {
    let room = instructionBytes
    return folders.flatMap((folder) => {
      const rule = state.rules.find(({ path }) => posix.dirname(path) === folder)
      const fitted = rule && fitInstruction(rule, { room, most: instructionBytes })
      room -= fitted?.bytes ?? 0
      return fitted ? [fitted.instruction.text] : []
    })
  }

  await refresh()
  return {
    refresh,
    getRootRules: (): string | undefined => textsIn(['.'])[0],
    /** Returns the texts for a path, absolute or from the root: the root's first, the closest last; none for a path outside. */
    getRulesForPath(filePath: string): string[] {
      const parts = relative(root, resolve(root, filePath)).split(sep)
      return isInside(root, resolve(root, filePath)) ? textsIn(['.', ...parts.map((_, at) => parts.slice(0, at + 1).join('/'))]) : []
    },
    ...references.members,
    stats: () => ({ totalRules: state.rules.length, ...references.stats() }),
  }
}
