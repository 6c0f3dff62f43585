import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox, SpawnPlan } from './contract.ts'
import { createSandbox } from './create-sandbox.ts'
import { hasBubblewrap, place } from './fixture.ts'
import { withoutMounts } from './readable.ts'
import { fixedPath } from './trial-key.ts'

const ground = { outside: '' }
beforeAll(() => {
  ground.outside = mkdtempSync(join(tmpdir(), 'braidclaw-readable-'))
})
afterAll(() => rmSync(ground.outside, { recursive: true, force: true }))

function folder() {
  const root = mkdtempSync(join(ground.outside, 'tools-'))
  const tool = join(root, 'tool')
  writeFileSync(tool, '#!/bin/sh\necho changed since; cat "${0%/*}/data"; exit 9\n', { mode: 0o755 })
  writeFileSync(join(root, 'data'), 'beside\n')
  mkdirSync(join(root, 'kept'))
  const copy = join(root, 'kept/tool')
  writeFileSync(copy, '#!/bin/sh\necho as approved "$1"; cat "$DIR/data"; echo x >"$DIR/data"; echo x >"$0"; touch in-workspace\n', {
    mode: 0o755,
  })
  return { root, tool, copy }
}

async function run(sandbox: Sandbox, plan: Pick<SpawnPlan, 'argv' | 'cwd'> & Partial<SpawnPlan>) {
  const out = { stdout: '', stderr: '' }
  const ended = await sandbox.spawn({
    env: { PATH: fixedPath },
    signal: new AbortController().signal,
    onOutput: (chunk, from) => {
      out[from] += Buffer.from(chunk).toString()
    },
    ...plan,
  })
  return { ended, ...out }
}

async function using(kind: 'bubblewrap' | 'landlock', use: (sandbox: Sandbox, workspace: string) => Promise<void>) {
  using at = place({ kind })
  const created = await createSandbox(at.settings)
  if (!created.ok) throw new Error(created.missing)
  try {
    await use(created.sandbox, at.workspace)
  } finally {
    created.sandbox.close?.()
  }
}

describe.each(hasBubblewrap() ? (['bubblewrap', 'landlock'] as const) : (['landlock'] as const))('%s', (kind) => {
  test('without being named, a folder outside cannot be read', async () => {
    const { root, tool } = folder()
    await using(kind, async (sandbox, cwd) => {
      const { ended, stdout } = await run(sandbox, { argv: ['/bin/sh', '-c', `cat ${root}/data; ${tool}`], cwd })
      expect(stdout).toBe('')
      expect(ended).not.toMatchObject({ ok: true, code: 0 })
    })
  })

  test('the other file runs in the place of the named one, reads what lies beside it and writes neither', async () => {
    const { root, tool, copy } = folder()
    await using(kind, async (sandbox, cwd) => {
      const readablePaths = [{ path: root }, { path: tool, from: copy }]
      const { stdout, stderr } = await run(sandbox, { argv: [tool, 'ü'], cwd, env: { PATH: fixedPath, DIR: root }, readablePaths })
      expect(stdout).toBe('as approved ü\nbeside\n')
      expect(stderr.split('\n').filter((line) => /Read-only|Permission denied/.test(line)).length).toBe(2)
      expect(readFileSync(join(root, 'data'), 'utf8')).toBe('beside\n')
      expect(await Bun.file(join(cwd, 'in-workspace')).exists()).toBe(true)
    })
  })

  test('a read-only workspace is one for that command alone, its repositories included', async () => {
    await using(kind, async (sandbox, cwd) => {
      mkdirSync(join(cwd, '.git'))
      const argv = ['/bin/sh', '-c', 'echo x >a; echo y >.git/b; ls -A']
      const { stdout } = await run(sandbox, { argv, cwd, readOnly: true })
      expect(stdout.split('\n')).not.toContain('a')
      expect(await Bun.file(join(cwd, '.git/b')).exists()).toBe(false)
      await run(sandbox, { argv, cwd })
      expect([await Bun.file(join(cwd, 'a')).exists(), await Bun.file(join(cwd, '.git/b')).exists()]).toEqual([true, true])
    })
  })
})

test('without mounts a program is started as the other file; other programs and arguments stay', () => {
  const plan = { argv: ['/t/tool', '/t/tool'], cwd: '/', env: {}, signal: new AbortController().signal, onOutput() {} }
  expect(withoutMounts(plan).argv).toEqual(['/t/tool', '/t/tool'])
  expect(withoutMounts({ ...plan, readablePaths: [{ path: '/t' }, { path: '/t/tool', from: '/k/tool' }] }).argv).toEqual([
    '/k/tool',
    '/t/tool',
  ])
  expect(withoutMounts({ ...plan, readablePaths: [{ path: '/t/other', from: '/k/tool' }] }).argv).toEqual(['/t/tool', '/t/tool'])
})
