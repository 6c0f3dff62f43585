/** Declares what a check is, what it needs, and what it returns. */

import type { Conversation, Host, Setup } from '../api.ts'

/** 0: a command's exit code. 1: a static tool of the project. 2: stories in a browser. 3: a model as judge. */
export type Tier = 0 | 1 | 2 | 3

export type CheckSpec = {
  readonly name: string
  readonly tier: Tier
  /** Tiers 0 and 1: a bash command that must exit with 0. */
  readonly command?: string
  /** Tier 2: a glob of story files, relative to the workspace. */
  readonly stories?: string
  /** Tier 3: what the judge decides by. */
  readonly criteria?: string
  /** How often it runs at most, 1 unless it is flaky, and how many of these runs must pass: all of them, unless given. */
  readonly runs?: number
  readonly pass?: number
  /** Limits one run; default: the longest time of a command, `limits.shell_timeout_max_s`. */
  readonly timeoutMs?: number
}

export type CheckResult = {
  readonly name: string
  readonly tier: Tier
  readonly pass: boolean
  readonly exit?: number
  /** The end of what it printed and why it failed: escaped, at most 8 KB of UTF-8. The same outcome has the same text. */
  readonly evidence: string
  readonly ms: number
  /** Its runs did not all end in the same way. */
  readonly flaky?: true
  /** It could not be run at all. */
  readonly notRun?: true
  readonly files?: readonly { readonly name: string; readonly path: string }[]
}

/** `digest`: of its definition and of the files that it names. `files`: their digests by path, to say which one changed. */
export type FrozenCheck = Pick<CheckSpec, 'name' | 'tier'> & { readonly digest: string; readonly files?: Readonly<Record<string, string>> }

export type CheckContext = {
  readonly host: Pick<Host, 'conversation' | 'schedules'>
  /** `setup.config.workspaceDir` is what is checked. */
  readonly setup: Setup
  readonly sandbox?: Parameters<Host['conversation']>[1]['sandbox']
  /** Cancels the check, which then counts as not run. */
  readonly signal?: AbortSignal
  /** The channel that receipts show; default: `check`. */
  readonly channel?: string
  /** The definitions of before; a check that has another one now is not run. */
  readonly frozen?: readonly FrozenCheck[]
  /** For a judge: what the work changed (default: `git diff HEAD`), and what other checks found. */
  readonly work?: { readonly difference?: string; readonly evidence?: string }
  /** Called before each conversation in which a check runs. */
  readonly opened?: (conversation: Pick<Conversation, 'id' | 'cancel'>) => void
}

/** The end of one run of a check. */
export type Attempt = Pick<CheckResult, 'pass' | 'exit' | 'evidence' | 'notRun' | 'files'>

export function notRun(why: string): Attempt {
  return { pass: false, evidence: why, notRun: true }
}
