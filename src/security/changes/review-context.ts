/** Defines what the judgement of a change set needs besides the changes themselves, and the findings that its rules report. */

import { count, quote } from '../../kit/text.ts'
import type { EntryState, OutsideGit } from '../../runtime/changes.ts'
import type { RuleOnChanges } from '../../runtime/rules/rule-thread.ts'
import type { CommandPlan } from '../command/verdict.ts'
import type { RuleName } from '../rules.ts'
import type { PathPolicy } from '../targets/path.ts'
import type { GitMoves } from './git-moves.ts'

/** The workspace as it was, or as it would be with all changes applied. */
export type Side = 'before' | 'after'

/** The stamp differs after every change of what is at the path. What was changed a moment ago has another stamp each time. */
export type PathMark = { readonly kind?: EntryState['kind'] | undefined; readonly stamp: string }

/**
 * Looks at the workspace before the changes and with them. Paths are relative to the workspace, '' is the workspace itself. No function
 * may throw; none follows a symbolic link. What cannot be looked at counts as missing, and the judgement then denies what depends on it.
 */
export type Look = {
  /** @returns the first `maxBytes` of a regular file */
  read(path: string, side: Side, maxBytes: number): Uint8Array | undefined
  kind(path: string, side: Side): EntryState['kind'] | undefined
  /** Costs a tenth of `kind`. @returns undefined for what a change names, or what lies in such a folder or behind a link */
  mark?(path: string): PathMark | undefined
  /** @returns the permission bits; absent: they are not known */
  mode?(path: string, side: Side): number | undefined
  /** @returns what a symbolic link contains, unresolved */
  link?(path: string, side: Side): string | undefined
  /** @returns the names in a folder */
  list?(path: string, side: Side): readonly string[] | undefined
  /** Its files have absolute paths; every other absolute path counts as missing. */
  readonly outside?: OutsideGit | undefined
}

/** `copy`: the changes stay in a private copy, and nothing that is not denied asks. */
export type ReviewLevel = 'readonly' | 'supervised' | 'auto' | 'full' | 'copy'

export type ReviewContext = {
  readonly policy: PathPolicy
  readonly level: ReviewLevel
  /** A person approved the command before it ran; this covers its changes, but nothing that is denied. */
  readonly approved: boolean
  /** The analysed command: a plain `git init`, `git remote add` and so on may change what no other command may. */
  readonly command?: CommandPlan
  readonly look: Look
  /** Tells whether a file's content holds the value of a registered secret. */
  readonly hasSecret?: (content: Uint8Array) => boolean
  /** Tells whether a path, relative to the workspace, matches `security.forbidden_reads`. */
  readonly isForbiddenRead?: (path: string) => boolean
  /** Absolute folders besides those of the system that a command sees read-only, such as the user's tool chains: links may lead there. */
  readonly readOnlyFolders?: () => readonly string[]
  /**
   * Tells whether git ignored the path before: by a rule for a folder above it, or by one for its own name. It ignores nothing that it tracks.
   */
  readonly ignored?: ((path: string, isFolder: boolean) => 'folder' | 'name' | undefined) | undefined
  /** Tells whether a person answered "always" for exactly this path. */
  readonly answered?: ((path: string) => boolean) | undefined
  /** The decision of the operator's own rules about these changes; undefined when no rule concerns them. */
  readonly ruled?: RuleOnChanges | undefined
  /** Absolute paths that git settings outside the workspace name as programs or hook folders. */
  readonly runByGit?: readonly string[]
  /** The moves of the changes in repositories: commits, the index, references. Absent when they were not read. */
  readonly git?: GitMoves
}

/**
 * `deny`: the whole change set is dropped. `person`: only a person may allow it, at every level. `ask`: it is not harmless, so every level
 * but full asks.
 */
export type Weight = 'deny' | 'person' | 'ask'

/** `why` completes "path: …". */
export type ChangeFinding = { readonly weight: Weight; readonly rule: RuleName; readonly path: string; readonly why: string }

const named = 10

/** @returns one clause with the first ten paths, those with the same reason together, and the number of all */
export function describeFindings(findings: readonly ChangeFinding[]): string {
  const byReason = new Map<string, string[]>()
  for (const { path, why } of findings.slice(0, named)) byReason.set(why, [...(byReason.get(why) ?? []), quote(path)])
  const clauses = [...byReason].map(([why, paths]) => `${paths.join(', ')}: ${why}`).join('; ')
  return findings.length > named ? `${clauses}; and ${count(findings.length - named, 'more path')}` : clauses
}
