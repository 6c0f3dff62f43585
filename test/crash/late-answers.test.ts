/** A yes that comes after the turn, killed at any instant or raced by another: changes enter whole or not at all, and never two that are a trap together. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { type Binary, compiledBinary, createHome, type Home, randomFrom } from './home.ts'

const sandboxed = test.if(needs('bwrap') && needs('git'))

const seed = Number(process.env.CRASH_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])
const random = randomFrom(seed)
const kills = Number(process.env.CRASH_KILLS ?? repetitions({ fast: 3, deep: 30 }))
const pairs = Number(process.env.CRASH_PAIRS ?? repetitions({ fast: 2, deep: 12 }))

const state: { binary?: Binary } = {}
beforeAll(async () => {
  state.binary = await compiledBinary()
  console.log(`CRASH_SEED=${seed}`)
})
afterAll(() => state.binary?.[Symbol.dispose]())

/** Runs a command that asks when nobody is there. @returns the id of its question */
async function asks(home: Home, command: string): Promise<string> {
  const responses = [{ tool_calls: [{ name: 'shell', arguments: { command } }] }, { text: 'done' }]
  const { code, stderr } = await home.start(['agent', '-m', 'go'], responses, ['setsid', '-w']).result
  if (code !== 4) throw new Error(stderr)
  const open: readonly { readonly id: string }[] = JSON.parse((await home.run(['approvals', 'list', '--json'])).stdout)
  return open[0]?.id ?? ''
}

const names = ['a', 'b', 'c', 'd', 'e', 'f']
const present = ({ workspace }: Home, folder: string) => names.filter((name) => existsSync(join(workspace, folder, name))).length

sandboxed(
  'approvals allow, killed: all of the changes are there or none, and what is not there can be allowed again',
  async () => {
    using home = createHome({ binary: state.binary?.path ?? '' })
    const seen = { died: 0, applied: 0, again: 0 }
    const usual = { ms: 80 }
    for (let round = 0; round < 5 * kills && seen.died < kills; round += 1) {
      const folder = `round${round}`
      const id = await asks(home, `mkdir ${folder}; for each in ${names.join(' ')}; do echo $each > ${folder}/$each; done`)
      const begin = performance.now()
      const running = home.start(['approvals', 'allow', id])
      await Bun.sleep(random() * usual.ms)
      running.kill()
      const { code } = await running.result
      if (code === null) seen.died += 1
      usual.ms = code === null ? usual.ms * 1.05 : (performance.now() - begin) * 0.9
      // Any command that looks at changes finishes or takes back what the killed one began.
      expect((await home.run(['changes', 'list'])).code).toBe(0)
      if (present(home, folder) > 0) seen.applied += 1
      else {
        seen.again += 1
        expect(await home.run(['approvals', 'allow', id])).toMatchObject({ code: 0 })
      }
      expect(present(home, folder)).toBe(names.length)
      expect((await home.run(['undo'])).code).toBe(0)
      expect(existsSync(join(home.workspace, folder))).toBe(false)
    }
    expect(await home.run(['receipt', 'verify', '--deep'])).toMatchObject({ code: 0 })
    console.log(JSON.stringify(seen))
    expect(seen.died).toBe(kills)
  },
  600_000,
)

sandboxed(
  'two answers at once, from one home or from two: never both parts of a repository that runs a program',
  async () => {
    for (let round = 0; round < pairs; round += 1) {
      using home = createHome({ binary: state.binary?.path ?? '' })
      using other = createHome({ binary: state.binary?.path ?? '', workspace: home.workspace })
      const homes = [home, round % 2 === 0 ? home : other]
      const canary = join(home.dir, 'ran')
      mkdirSync(join(home.workspace, 'docs'))
      const first = "mkdir docs/objects; echo 'ref: refs/heads/main' > docs/HEAD; echo k > docs/objects/k.txt"
      const trap = `[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch ${canary}; false"\n`
      const second = `mkdir docs/refs; echo k > docs/refs/k.txt; printf '%s' '${trap}' > docs/config`
      const ids = [await asks(home, first), await asks(homes[1] ?? home, second)]
      const answers = await Promise.all(homes.map((each, at) => each.run(['approvals', 'allow', ids[at] ?? ''])))
      expect(answers.map(({ code }) => code).sort()).toEqual([0, 1])
      expect(existsSync(join(home.workspace, 'docs/HEAD'))).toBe(answers[0]?.code === 0)
      expect(existsSync(join(home.workspace, 'docs/config'))).toBe(answers[1]?.code === 0)
      const env = { PATH: '/usr/bin:/bin', HOME: home.dir, GIT_CEILING_DIRECTORIES: home.dir }
      Bun.spawnSync(['git', 'status'], { cwd: join(home.workspace, 'docs'), env })
      expect(existsSync(canary)).toBe(false)
      for (const each of new Set(homes)) expect((await each.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    }
  },
  600_000,
)
