/** Makes workspaces with hostile changes in them, and asks the git of another user outside what it runs there. */

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Change, ChangeReview } from '../../src/runtime/changes.ts'
import { confined, type Running } from '../../src/sandbox/fixture.ts'
import { reviewChanges } from '../../src/security/changes/review-changes.ts'
import type { ReviewContext } from '../../src/security/changes/review-context.ts'
import type { Applied } from '../../src/workspace/changes/contract.ts'
import { createLook } from '../../src/workspace/changes/look.ts'
import { openChangeStore } from '../../src/workspace/changes/store.ts'
import { readMoves } from '../../src/workspace/git/read-moves.ts'

export type Judged = ChangeReview & { readonly changes: readonly Change[]; readonly printed: string }

/** `apply` and `drop`: exactly one of them ends it. */
export type Attempted = Judged & { apply(): Promise<Applied>; drop(): void }

export type Ground = Running &
  Disposable & {
    /** A program that git runs writes this file. */
    readonly canary: string
    /** Settings that make git run a program wherever it can. */
    readonly trap: string
    /** Runs a script as another user in the workspace, outside of every sandbox. */
    outside(script: string): string
    hasRun(): boolean
    /** Gives the workspace to the other user. */
    handOver(): void
    /** Runs a script as ourselves in the workspace, as the operator does who made it. */
    own(script: string): void
    /** Runs the script as a command in a private view, judges what it changed, and leaves the rest to the caller. */
    attempt(script: string, context?: Partial<ReviewContext>): Promise<Attempted>
    /** The same, and drops the changes. */
    judge(script: string, context?: Partial<ReviewContext>): Promise<Judged>
    /** Applies the changes whatever the verdict is. */
    apply(script: string, context?: Partial<ReviewContext>): Promise<Judged>
  }

const isRoot = process.getuid?.() === 0

export async function ground(): Promise<Ground> {
  const box = await confined()
  const [out, home] = [join(box.root, 'out'), join(box.root, 'other')]
  for (const folder of [out, home]) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, 0o777)
  }
  chmodSync(box.root, 0o755)
  writeFileSync(
    join(home, '.gitconfig'),
    '[safe]\n\tdirectory = *\n[user]\n\tname = Other\n\temail = o@example.com\n[advice]\n\tdetachedHead = false\n',
  )
  const canary = join(out, 'ran')
  const env = { PATH: '/usr/bin:/bin', HOME: home, GIT_CONFIG_NOSYSTEM: '1', GIT_EDITOR: 'true', GIT_CEILING_DIRECTORIES: box.root }
  const user = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
  const trap = `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "touch ${canary}; false"\n\tsshCommand = "touch ${canary}; false"\n`
  const policy = { workspace: box.workspace, workspaceOnly: true, forbiddenPaths: [], protectedPaths: [], home }
  const limits = { keepBytes: 1e9, keepDays: 30, keepSets: 1000 }
  const store = openChangeStore({ folder: join(box.root, 'sets'), workspace: box.workspace, log() {}, now: () => 0, limits })

  async function attempt(script: string, context: Partial<ReviewContext> = {}): Promise<Attempted> {
    const { view, stdout, stderr } = await box.change(script)
    const changes = await view.changes()
    using look = createLook({ workspace: box.workspace, upper: join(view.folder, 'up'), changes })
    const whole = { policy, level: 'full', approved: true, look, ...context } as const
    const review = reviewChanges(changes, { ...whole, git: readMoves({ upper: join(view.folder, 'up'), changes, context: whole }) })
    const about = { run: 'run_1', call: 'call_1', conversation: 'con_1', tool: 'shell', at: 0 }
    const applicable = changes.filter(({ after }) => after?.kind !== 'other')
    return {
      ...review,
      changes,
      printed: stdout + stderr,
      apply: () => store.apply({ id: view.id, folder: view.folder, changes: applicable, about }),
      drop: view.drop,
    }
  }

  return {
    ...box,
    canary,
    trap,
    outside(script) {
      const { stdout, stderr } = Bun.spawnSync([...user, 'sh', '-c', script], { cwd: box.workspace, env })
      return `${stdout}${stderr}`
    },
    hasRun: () => existsSync(canary),
    handOver() {
      if (isRoot) Bun.spawnSync(['chown', '-R', '65534:65534', box.workspace])
    },
    own(script) {
      const { exitCode, stdout, stderr } = Bun.spawnSync(['sh', '-c', script], { cwd: box.workspace, env })
      if (exitCode !== 0) throw new Error(`${stdout}${stderr}`)
    },
    attempt,
    async judge(script, context) {
      const judged = await attempt(script, context)
      judged.drop()
      return judged
    },
    async apply(script, context) {
      const judged = await attempt(script, context)
      const applied = await judged.apply()
      if (!applied.ok) throw new Error(applied.message)
      return judged
    },
    [Symbol.dispose]: () => box[Symbol.dispose](),
  }
}
