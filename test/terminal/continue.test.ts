/** `-c` belongs to a folder: what was said in one is not sent along in another; and what is older than that stays within reach. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { oldHome, unpack } from '../records/homes/unpack.ts'
import { agentFile } from '../support/agent-files.ts'
import { type Nest, nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

function folder(at: Nest, name: string): string {
  const path = join(at.home, name)
  mkdirSync(path, { recursive: true })
  return path
}

/** A model that only counts; what it was told is what goes on. */
async function withModel(use: (fake: Fake, env: { readonly [name: string]: string }) => Promise<void>): Promise<void> {
  const fake = startFake(() => sends(dialects[0]?.events({ text: ['noted'] }) ?? []))
  try {
    await use(fake, { OLLAMA_HOST: fake.url, BRAIDCLAW_MODEL: 'ollama/llama3.2:1b' })
  } finally {
    fake.stop()
  }
}

const told = (fake: Fake) => fake.asked.at(-1)?.text ?? ''

async function idOf(at: Nest, cwd: string, env: { readonly [name: string]: string }, args: readonly string[]): Promise<string> {
  const { code, stdout } = await at.run(['agent', '--json', ...args], { cwd, env })
  expect(code).toBe(0)
  return JSON.parse(stdout).conversationId
}

describe('agent', () => {
  test('goes on with what was begun here, and with nothing that was begun elsewhere', async () => {
    using at = nest()
    const [a, b] = [folder(at, 'a'), folder(at, 'b')]
    await withModel(async (fake, env) => {
      await at.run(['agent', '-m', 'the password of a'], { cwd: a, env })
      const refused = await at.run(['agent', '-c', '-m', 'go on'], { cwd: b, env })
      expect([refused.code, refused.stdout, fake.asked.length]).toEqual([1, '', 1])
      const [id] = /conversation_\w+/.exec(refused.stderr) ?? []
      expect(refused.stderr).toBe(
        `error: no conversation was begun in ${b} yet; the latest one, ${id}, was begun in ${a}; to continue that one: braidclaw agent --resume ${id}\n`,
      )
      await at.run(['agent', '-m', 'the colour of b'], { cwd: b, env })
      await at.run(['agent', '-c', '-m', 'go on'], { cwd: a, env })
      expect([told(fake).includes('password of a'), told(fake).includes('colour of b')]).toEqual([true, false])
      await at.run(['agent', '-c', '-m', 'go on'], { cwd: b, env })
      expect([told(fake).includes('password of a'), told(fake).includes('colour of b')]).toEqual([false, true])
    })
  })

  test('a link to a folder is that folder, and -C names another', async () => {
    using at = nest()
    const [a, b] = [folder(at, 'a'), folder(at, 'b')]
    symlinkSync(a, join(at.home, 'link'))
    await withModel(async (fake, env) => {
      await at.run(['agent', '-m', 'the password of a'], { cwd: a, env })
      for (const more of [
        ['-C', join(at.home, 'link')],
        ['-C', a],
      ]) {
        expect((await at.run(['agent', '-c', ...more, '-m', 'go on'], { cwd: b, env })).code).toBe(0)
        expect(told(fake)).toContain('password of a')
      }
    })
  })

  test('one that is gone on with by its id stays where it was begun', async () => {
    using at = nest()
    const [a, b] = [folder(at, 'a'), folder(at, 'b')]
    await withModel(async (fake, env) => {
      await at.run(['agent', '-m', 'the password of a'], { cwd: a, env })
      const refused = await at.run(['agent', '-c', '-m', 'go on'], { cwd: b, env })
      const [id = ''] = /conversation_\w+/.exec(refused.stderr) ?? []
      expect((await at.run(['agent', '--resume', id, '-m', 'from b'], { cwd: b, env })).code).toBe(0)
      expect((await at.run(['agent', '-c', '-m', 'go on'], { cwd: b, env })).code).toBe(1)
      await at.run(['agent', '-c', '-m', 'go on'], { cwd: a, env })
      expect(told(fake)).toContain('from b')
    })
  })
})

describe('the filter', () => {
  test('begins a new conversation in another folder, and says where the latest one was', async () => {
    using at = nest()
    const [a, b] = [folder(at, 'a'), folder(at, 'b')]
    await withModel(async (fake, env) => {
      await at.run(['the password of a'], { cwd: a, env })
      const fresh = await at.run(['-c', 'and here?'], { cwd: b, env })
      const [id = ''] = /conversation_\w+/.exec(fresh.stderr) ?? []
      expect(fresh.stderr).toBe(
        `note: no conversation was begun in ${b} yet; the latest one, ${id}, was begun in ${a} (to continue that one: --resume ${id}); a new conversation begins\n`,
      )
      expect(told(fake)).not.toContain('password of a')
      await at.run(['-c', 'and then?'], { cwd: a, env })
      expect([told(fake).includes('password of a'), told(fake).includes('and here?')]).toEqual([true, false])
    })
  })

  test('an agent of one’s own keeps its session wherever one is', async () => {
    using at = nest()
    mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
    await withModel(async (fake, env) => {
      await at.run(['--agent', 'coder', 'the password of a'], { cwd: folder(at, 'a'), env })
      await at.run(['--agent', 'coder', '-c', 'and here?'], { cwd: folder(at, 'b'), env })
      expect(told(fake)).toContain('password of a')
    })
  })

  test('reset begins anew, and nothing is said of folders', async () => {
    using at = nest()
    const cwd = folder(at, 'a')
    await withModel(async (fake, env) => {
      await at.run(['the password of a'], { cwd, env })
      await at.run(['reset'], { cwd, env })
      expect((await at.run(['-c', 'and now?'], { cwd, env })).stderr).toBe('note: nothing to continue; a new conversation begins\n')
      expect(told(fake)).not.toContain('password of a')
    })
  })
})

test('a home of version 0.1.0 knows no folders: its conversations are named, gone on with by their ids, and then belong to a folder', async () => {
  using at = nest()
  unpack(oldHome, at)
  const refused = await at.run(['agent', '-c', '-m', 'And now?'])
  const [id = ''] = /conversation_\w+/.exec(refused.stderr) ?? []
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`the latest one, ${id}, was begun before folders were recorded`)
  expect((await at.run(['agent', '--resume', id, '-m', 'And now?'])).code).toBe(0)
  expect(await idOf(at, at.workspace, {}, ['-c', '-m', 'And then?'])).toBe(id)
})
