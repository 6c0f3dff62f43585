/** Defines what entrances read and decide besides conversations: records, approvals, receipts, changes, memory, tools, the stop. */

import type { Pin } from '../../memory/agent-files/pins.ts'
import type { AlwaysRule, Approval } from '../../memory/approval-table.ts'
import type { Conversation } from '../../memory/conversations/conversations.ts'
import type { CopiedTurn } from '../../memory/conversations/copies.ts'
import type { ChoicesQuery, ConversationEntry, Hit } from '../../memory/conversations/search-turns.ts'
import type { SopStore } from '../../memory/journal/sop-store.ts'
import type { Turn } from '../../memory/journal/turns.ts'
import type { Receipt } from '../../receipts/form/receipt.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { Ending, Judgement, Label, Risk, Usage } from '../../runtime/event.ts'
import type { RunIdentity, Schema } from '../../runtime/port.ts'
import type { Conflict, SetState } from '../../workspace/changes/contract.ts'
import type { ClaimMark } from './claim-mark.ts'

/** The id of a token: only conversations that it began are listed or found. Absent: all. */
export type Owner = string

/** Times in milliseconds since 1970. `turns` counts questions. `title`: as renamed, else the first question, shortened. */
export type ConversationFacts = Conversation

/** `next`: pass it as `before` for the next page; absent on the last one. */
export type ConversationPage = { readonly conversations: readonly ConversationFacts[]; readonly next?: number }

/**
 * A conversation as `session export --json` writes it. Times are ISO 8601 in UTC. `labels`: the kinds of data that it has read. A message has
 * the shape that models get, without what only one provider can read.
 */
export type ConversationFile = {
  readonly format: 'braidclaw.conversation'
  readonly version: 1
  readonly conversationId: string
  readonly title: string
  readonly folder: string | null
  readonly labels: readonly Label[]
  readonly turns: readonly (Omit<CopiedTurn, 'at' | 'runIds'> & { readonly at: string })[]
}

/** `code` and `ended` are absent while the run is under way. `running`: its process lives and has not ended it. */
export type RunFacts = Pick<RunIdentity, 'runId' | 'conversationId' | 'turnId' | 'channel' | 'provider' | 'model'> & {
  /** The question, shortened. */
  readonly prompt?: string
  readonly started: number
  readonly ended?: number
  readonly code?: Ending['code']
  readonly message?: string
  readonly running: boolean
}

/** One step of a transcript, in order; `seq` is the number of the journal entry that began it. */
export type TranscriptStep = { readonly seq: number; readonly at: number } & (
  | { readonly type: 'message'; readonly text: string }
  /** `usage` is what this model call used. `cut`: why the reply is incomplete. */
  | {
      readonly type: 'reply'
      readonly text: string
      readonly thinking?: string
      readonly model: string
      readonly usage?: Usage
      readonly cut?: 'length' | 'content_filter'
    }
  | ({ readonly type: 'call' } & CallStep)
  | { readonly type: 'error'; readonly code: string; readonly message: string }
)

/** One call with its judgement when it arrived, and everything that became of it. What is absent has not happened, or not yet. */
export type CallStep = Pick<Judgement, 'risk' | 'verdict' | 'rule' | 'reason' | 'summary'> & {
  readonly callId: string
  readonly tool: string
  readonly input: unknown
  /** The questions about it: first about the call, then about its changes. */
  readonly approvals: readonly CallApproval[]
  readonly outcome?: {
    readonly status: 'allowed' | 'denied' | 'failed'
    readonly output: string
    readonly error?: string
    readonly at: number
  }
  /** The id of its receipt; absent when receipts are off. */
  readonly receipt?: string
  readonly changes?: CallChanges
}

export type CallApproval = {
  readonly id: string
  readonly about: 'call' | 'changes'
  readonly opened: number
  readonly decision?: { readonly allow: boolean; readonly by: string; readonly note?: string; readonly at: number }
}

/**
 * `fate`: `applied`, `dropped`, `pending` (waiting for a person), `none`, or `direct` (the call ran on the workspace itself). `state` is
 * that of the kept change set now, absent when it is no longer kept. `set` is what the functions of `changes` take.
 */
export type CallChanges = {
  readonly fate: 'applied' | 'dropped' | 'pending' | 'none' | 'direct'
  readonly digest?: string
  readonly set?: string
  readonly state?: SetState
  readonly summary?: string
  readonly count?: number
}

export type RunTranscript = RunFacts & {
  readonly steps: readonly TranscriptStep[]
  /** Sums all model calls. */
  readonly usage?: Usage
  /** SHA-256 of the visible events, in hex; absent before the end. */
  readonly digest?: string
  /** The claims of its answer, each with what the turn proves. */
  readonly proof: readonly ClaimMark[]
}

export type ApprovalDecision = {
  readonly allow: boolean
  /** The author of the decision: the name of a person, a terminal, a token. Receipts and journal show it. */
  readonly by: string
  /** The reason, which the model sees when the decision is a denial. */
  readonly note?: string
  /** Only with a yes to changes of a turn that waits in this process: the paths that are applied; the others are dropped. */
  readonly files?: readonly string[]
  /** Only with a yes to a turn that waits in this process: also allow what is like it from now on. */
  readonly always?: boolean
}

/**
 * `applied`: the changes entered the workspace here, because nobody waited for the answer any more. `always`: what is allowed from now on.
 */
export type DecidedApproval = Approval & { readonly applied?: { readonly count: number }; readonly always?: string }

/** Oldest first. `next`: pass it as `after` for the next page; absent on the last one. */
export type ReceiptPage = { readonly receipts: readonly Receipt[]; readonly next?: number; readonly unreadable: number }

/** `against`: an anchor line that was kept elsewhere; then the check also says whether anything was cut since. */
export type ReceiptCheckOptions = { readonly deep?: boolean; readonly against?: string }

/** `problems`: sentences; the first says what to look at. `deep`: the journal was compared too. */
export type ReceiptCheck = {
  readonly ok: boolean
  readonly deep: boolean
  readonly count: number
  readonly completeness: string
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
  readonly unfinished: readonly string[]
}

/** The same fields as in `tool list --json`. `why`: the reason why it is not offered. */
export type ToolFacts = {
  readonly name: string
  readonly description: string
  readonly risk: Risk
  readonly active: boolean
  readonly why?: string
  readonly source: string
  readonly parameters: Schema
}

export type StopState = { readonly stopped: boolean; readonly reason?: string }

/** The result of `estop --clear`: whether the tools were stopped before. */
export type StopChanged = StopState & { readonly was: boolean }

/** `name` is RUN/CALL. */
export type ChangeFacts = {
  readonly name: string
  readonly state: SetState
  readonly runId: string
  readonly callId: string
  readonly conversationId: string
  readonly tool: string
  readonly command?: string
  readonly at: number
  readonly workspace: string
  readonly count: number
  readonly summary?: string
}

/** `patch` is a unified diff; `undone` are the paths that were changed back since. */
export type ShownChanges = ChangeFacts & { readonly patch: string; readonly paths: readonly string[]; readonly undone: readonly string[] }

/** `conflicts`: paths that somebody else changed since; `force` overwrites them. */
export type Undone =
  | { readonly ok: true; readonly name: string; readonly count: number }
  | { readonly ok: false; readonly name: string; readonly message: string; readonly conflicts: readonly Conflict[] }

type SopQuestion = {
  readonly run: string
  readonly name: string
  readonly step: string
  readonly kind: 'sop.approval' | 'sop.doubt'
  readonly prompt: string
  readonly livesMs: number
}

export type SopRecords = {
  readonly runs: SopStore
  /** Opens a question, unless it is there already. @returns its id */
  ask(question: SopQuestion): string
  question(id: string): (Approval & { readonly isOver: boolean }) | undefined
  /** Uses up a yes; works once. */
  use(id: string): boolean
  /** Closes a question that nobody needs to answer any more. */
  close(id: string, why: string): void
  /** Returns what a yes to a question would change in the workspace. */
  changesOf(id: string): Promise<ChangeSet | undefined>
  /** Returns the digests of the versions of a file that may begin by themselves; without a path those of all files. */
  enabled(path?: string): readonly string[]
  /** Lets one version of a file begin by itself, or none. */
  enable(path: string, digest: string | undefined, by: string): void
  /** Ends the turns whose process died, so that they can continue. */
  recover(): Promise<void>
  written(): void
}

/**
 * Everything that is returned has passed the redactor. Each function throws FailureError: `error` when what is named does not exist or
 * cannot be read, `usage` for a request that makes no sense, `integrity` when the record was altered.
 */
export type HostRecords = {
  readonly sops: SopRecords
  readonly conversations: {
    /** Most recently used first. @param limit 50 by default, at most 500 */
    list(page?: { readonly limit?: number; readonly before?: number; readonly ownedBy?: Owner | undefined }): ConversationPage
    /** Returns all turns, oldest first. */
    read(conversationId: string): ConversationFacts & { readonly messages: readonly Turn[] }
    rename(conversationId: string, title: string): ConversationFacts
    /** Most recently used first. */
    choices(query: ChoicesQuery): readonly ConversationEntry[]
    /**
     * Begins a conversation with the turns of another one that have ended, or with its first `turns`. The other one stays as it is; one that
     * was altered is not copied.
     */
    fork(conversationId: string, how?: { readonly turns?: number | undefined }): Promise<ConversationFacts>
    export(conversationId: string): ConversationFile
    /** Begins a conversation with what `export` returned. `folder`: where it counts as begun; `value`: any JSON value */
    import(value: unknown, folder: string): ConversationFacts
    /** Deletes its turns, runs, journal and approvals, not its receipts, and leaves a receipt. Refused while a run is under way. */
    delete(conversationId: string, by: string): { readonly conversationId: string; readonly turns: number; readonly runs: number }
  }
  readonly runs: {
    /** Newest first. `before`: a run id. @param limit 20 by default, at most 500 */
    list(page?: {
      readonly limit?: number
      readonly before?: string
      readonly conversationId?: string
      readonly ownedBy?: Owner | undefined
    }): { readonly runs: readonly RunFacts[]; readonly next?: string }
    /** `ref`: an id, a unique prefix of it, or "last". */
    show(ref: string): Promise<RunTranscript>
  }
  readonly approvals: {
    /** Newest first; those that wait for an answer, or with `all` also those that are answered, used or expired. */
    list(filter?: { readonly all?: boolean; readonly limit?: number; readonly ownedBy?: Owner | undefined }): readonly Approval[]
    /** `patch`: what a yes to changes would apply. RUN/CALL also names the question about the changes of that call. */
    show(id: string): Promise<Approval & { readonly patch?: string }>
    /** Answers a question once. A turn that waits continues at once; changes that nobody waits for are applied or dropped here. */
    decide(id: string, decision: ApprovalDecision): Promise<DecidedApproval>
    rules(): readonly (AlwaysRule & { readonly allows: string })[]
    revokeRule(id: number): AlwaysRule & { readonly allows: string }
  }
  readonly receipts: {
    /** Returns the ids of the receipts of one run, in the order of its calls' ends. */
    ofRun(runId: string): readonly string[]
    /** @param limit 50 by default, at most 500. `after`: the number of the last receipt that was seen; absent: the newest ones */
    page(page?: { readonly after?: number; readonly limit?: number }): ReceiptPage
    /** A long log is checked by a process of its own, so that no turn waits for it. */
    verify(options?: ReceiptCheckOptions): Promise<ReceiptCheck>
    /** The short line to keep elsewhere; `error` when there are no receipts yet, `integrity` when the chain is broken. */
    anchor(): { readonly line: string; readonly count: number; readonly head: string }
  }
  readonly memory: {
    search(request: { readonly query: string; readonly limit?: number; readonly ownedBy?: Owner | undefined }): readonly Hit[]
  }
  readonly pins: {
    list(agent?: string): readonly Pin[]
    add(text: string, agent?: string): Pin
    remove(number: number, agent?: string): Pin
  }
  readonly changes: {
    /** Newest first. */
    list(filter?: {
      readonly limit?: number
      readonly runId?: string
      readonly ownedBy?: Owner | undefined
    }): Promise<readonly ChangeFacts[]>
    /** `ref`: RUN/CALL, a run with one change set, or "last". */
    show(ref: string): Promise<ShownChanges>
    undo(ref: string, how?: { readonly force?: boolean }): Promise<Undone>
    /** Undoes all change sets of the run that are applied, newest first; stops at the first that cannot be undone. */
    undoRun(runId: string, how?: { readonly force?: boolean }): Promise<readonly Undone[]>
  }
  readonly stop: {
    state(): StopState
    /** `reason` is shown to whoever is stopped. */
    set(reason?: string): StopChanged
    clear(): StopChanged
  }
  tools(): Promise<readonly ToolFacts[]>
}
