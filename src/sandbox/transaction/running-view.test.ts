import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeep } from '../../../test/support/tier.ts'
import type { RunningView, SandboxSettings, SpawnPlan, SpawnResult } from '../contract.ts'
import { createSandbox } from '../create-sandbox.ts'
import { shareEtc } from '../filesystem/shared-etc.fixture.ts'
import { hasBubblewrap, limits, place } from '../fixture.ts'
import { fixedPath } from '../trial-key.ts'

const real = test.if(hasBubblewrap())

type Job = {
  readonly workspace: string
  readonly ended: Promise<SpawnResult>
  readonly view: RunningView
  printed(): string
  /** Waits for a line of its output. */
  prints(text: string): Promise<void>
  stop(): Promise<Extract<SpawnResult, { ok: true }>>
}

function outsideAt(common: string): NonNullable<SpawnPlan['outside']> {
  mkdirSync(join(common, 'refs'), { recursive: true })
  for (const path of ['HEAD', 'refs/a']) writeFileSync(join(common, path), '1')
  return { root: common, git: common, common, hidden: [] }
}

/** Runs a script in the background, on a workspace with these files. */
async function withJob(
  script: string,
  files: { readonly [path: string]: string },
  work: (job: Job) => Promise<void>,
  { outside: name, ...more }: Partial<SandboxSettings> & { readonly outside?: string } = {},
): Promise<void> {
  using ground = place({ forbiddenReads: ['**/*.pem'], ...more })
  const { workspace } = ground
  shareEtc(ground.settings.stateHome)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(workspace, path, '..'), { recursive: true })
    writeFileSync(join(workspace, path), text)
  }
  const created = await createSandbox(ground.settings)
  if (!created.ok) throw new Error(created.missing)
  const end = new AbortController()
  const opened = Promise.withResolvers<RunningView>()
  const state = { printed: '', waiting: new Set<() => void>() }
  const plan: SpawnPlan = {
    argv: ['/bin/bash', '-c', script],
    cwd: workspace,
    env: { PATH: fixedPath, HOME: ground.settings.home },
    signal: end.signal,
    view: 'private',
    outside: name === undefined ? undefined : outsideAt(join(ground.root, name)),
    onView: opened.resolve,
    onOutput(chunk) {
      state.printed += Buffer.from(chunk).toString()
      for (const look of state.waiting) look()
    },
  }
  const ended = created.sandbox.spawn(plan)
  void ended.then(() => opened.reject(new Error(`it ended: ${state.printed}`)))
  try {
    await work({
      workspace,
      ended,
      view: await opened.promise,
      printed: () => state.printed,
      prints: (text) =>
        new Promise((resolve) => {
          const look = () => state.printed.includes(text) && resolve()
          state.waiting.add(look)
          look()
        }),
      async stop() {
        end.abort()
        const found = await ended
        if (!found.ok) throw new Error(found.message)
        return found
      },
    })
  } finally {
    end.abort()
    await ended
    created.sandbox.close?.()
  }
}

real('what it writes into its view counts, and too much of it ends the command', async () => {
  const most = { ...limits, diskBytes: 8 * 2 ** 20 }
  await withJob(
    'echo ready; head -c 40000000 /dev/urandom > large; sync; sleep 60',
    {},
    async ({ ended }) => {
      expect(await ended).toMatchObject({
        ok: true,
        stopped: expect.stringContaining('its processes together wrote more than 8388608 bytes'),
      })
    },
    { limits: most },
  )
})

const ready = 'echo ready; '
const changesOf = async ({ view }: Extract<SpawnResult, { ok: true }>) => (await view?.changes())?.map(({ path }) => path)

describe('what a running command cannot do with the files that are written into its view', () => {
  real('a folder that it replaced with a link leads no write out of the view', async () => {
    const outside = place()
    await withJob(`rm -r src; ln -s ${outside.root} src; ${ready} sleep 60`, { 'src/a': 'one' }, async ({ workspace, view, prints }) => {
      await prints('ready')
      writeFileSync(join(workspace, 'src/a'), 'two')
      writeFileSync(join(workspace, 'src/new'), 'two')
      expect(view.follow([{ path: 'src/a' }, { path: 'src/new', was: 'nothing' }, { path: '../x' }, { path: 'no\0name' }])).toEqual([
        'no\0name',
        'src/a',
        'src/new',
      ])
      expect(readdirSync(outside.root).toSorted()).toEqual(['home', 'state', 'workspace'])
    })
    outside[Symbol.dispose]()
  })

  real('nor does a folder that it swaps with a link while they are written', async () => {
    using outside = place()
    const swap = `node -e '
      const fs = require("fs"); fs.mkdirSync("d"); console.log("ready")
      for (;;) { fs.renameSync("d", "e"); fs.symlinkSync("${outside.root}", "d"); fs.unlinkSync("d"); fs.renameSync("e", "d") }'`
    await withJob(swap, {}, async ({ workspace, view, prints }) => {
      await prints('ready')
      mkdirSync(join(workspace, 'd'))
      const names = Array.from({ length: isDeep ? 5_000 : 200 }, (_, at) => `d/f${at}`)
      for (const name of names) writeFileSync(join(workspace, name), 'x')
      for (const path of names) view.follow([{ path, was: 'nothing' }])
      expect(readdirSync(outside.root).toSorted()).toEqual(['home', 'state', 'workspace'])
    })
  })

  real('what nobody may read is not written there, and a link in the workspace is no way to other files', async () => {
    await withJob(`${ready} sleep 60`, {}, async ({ workspace, view, prints, stop }) => {
      await prints('ready')
      writeFileSync(join(workspace, 'key.pem'), 'secret')
      symlinkSync('/etc', join(workspace, 'link'))
      view.follow([{ path: 'key.pem' }, { path: 'link/passwd' }])
      const { view: ended } = await stop()
      expect(existsSync(join(ended?.folder ?? '', 'up/key.pem'))).toBe(false)
      expect(readdirSync(join(ended?.folder ?? '', 'up'))).toEqual([])
      ended?.drop()
    })
  })
})

const watcher = (path: string) => `node -e '
  const { watch, readFileSync } = require("fs"); const read = () => { try { return readFileSync("${path}", "utf8") } catch { return "none" } }
  watch("${path.includes('/') ? path.replace(/\/.*/, '') : '.'}", () => console.log("saw " + read())); console.log("ready")'`

describe('changes of the workspace', () => {
  real('are noticed by a watcher in the view, the first, the second, a deletion and a creation', async () => {
    await withJob(watcher('src/a'), { 'src/a': 'one' }, async ({ workspace, view, prints, stop }) => {
      await prints('ready')
      const path = join(workspace, 'src/a')
      for (const text of ['two', 'and three']) {
        writeFileSync(`${path}.new`, text)
        renameSync(`${path}.new`, path)
        expect(view.follow([{ path: 'src/a' }])).toEqual([])
        await prints(`saw ${text}`)
      }
      rmSync(path)
      expect(view.follow([{ path: 'src/a' }])).toEqual([])
      await prints('saw none')
      writeFileSync(path, 'again')
      expect(view.follow([{ path: 'src/a', was: 'nothing' }])).toEqual([])
      await prints('saw again')
      const ended = await stop()
      writeFileSync(path, 'too late')
      expect(view.follow([{ path: 'src/a' }])).toEqual([])
      expect(readFileSync(join(ended.view?.folder ?? '', 'up/src/a'), 'utf8')).toBe('again')
      expect(await changesOf(ended)).toEqual([])
    })
  })

  real('to what it changed itself stay away, and are told apart from what it only touched', async () => {
    const script = `echo mine > own; touch touched; echo new > made; rm gone; ${ready} sleep 60`
    await withJob(script, { own: 'a', touched: 'a', gone: 'a' }, async ({ workspace, view, prints, stop }) => {
      await prints('ready')
      for (const name of ['own', 'touched', 'gone', 'made']) writeFileSync(join(workspace, name), 'b')
      const was = { kind: 'file', mode: 0o644, sha256: new Bun.CryptoHasher('sha256').update('a').digest('hex') } as const
      const all = ['own', 'touched', 'gone'].map((path) => ({ path, was }))
      expect(view.follow([...all, { path: 'made', was: 'nothing' }]).toSorted()).toEqual(['gone', 'made', 'own'])
      const ended = await stop()
      await expect(changesOf(ended)).rejects.toThrow('the command changed "gone", "made", "own", and so did somebody else meanwhile')
      ended.view?.drop()
    })
  })

  real('come back as nobody’s change, even where the view was left behind, and its own are read when it has ended', async () => {
    await withJob(
      `${ready} while [ ! -e go ]; do sleep 0.02; done; echo x > own; echo more >> src/a; echo done; sleep 60`,
      { 'src/a': '1\n', b: '1' },
      async (job) => {
        const { workspace, view, prints, stop } = job
        await prints('ready')
        writeFileSync(join(workspace, 'src/a'), '2\n')
        mkdirSync(join(workspace, 'made/deep'), { recursive: true })
        writeFileSync(join(workspace, 'made/deep/f'), '2')
        writeFileSync(join(workspace, 'b'), '2')
        view.follow([{ path: 'src/a' }, { path: 'made' }, { path: 'b' }])
        // These are not followed.
        writeFileSync(join(workspace, 'b'), '3')
        writeFileSync(join(workspace, 'made/other'), '3')
        writeFileSync(join(workspace, 'go'), '')
        view.follow([{ path: 'go', was: 'nothing' }])
        await prints('done')
        const copied = await view.copy()
        expect((await copied.changes()).map(({ path }) => path)).toEqual(['own', 'src/a'])
        expect(readFileSync(join(copied.folder, 'up/src/a'), 'utf8')).toBe('2\nmore\n')
        copied.drop()
        const ended = await stop()
        expect(await changesOf(ended)).toEqual(['own', 'src/a'])
        ended.view?.drop()
      },
    )
  })

  real('has what it changed in a git directory outside, and tells when somebody else changed that, too', async () => {
    const git = '../git'
    const script = `cd ${git}; echo 2 > refs/a; rm HEAD; ln -s x refs/b; printf ready; while :; do sleep 0.05; done`
    await withJob(
      script,
      {},
      async ({ workspace, view, prints, stop }) => {
        await prints('ready')
        const copied = await view.copy()
        const common = join(workspace, git)
        const named = ['HEAD', 'refs/a', 'refs/b'].map((name) => join(common, name))
        expect((await copied.changes()).map(({ path }) => path)).toEqual(named)
        expect(readdirSync(join(common, 'refs'))).toEqual(['a'])
        copied.drop()
        writeFileSync(join(common, 'refs/a'), '3')
        expect(await changesOf(await stop()).catch(String)).toContain(`the command changed ${JSON.stringify(join(common, 'refs/a'))}`)
      },
      { outside: 'git' },
    )
  })
})
