import { describe, expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change } from '../../runtime/changes.ts'
import { confined, type Running } from '../fixture.ts'

const real = test.if(needs('bwrap'))

const paths = (changes: readonly Change[]) => changes.map(({ path }) => path)

function write(box: Running, files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    const at = join(box.workspace, path)
    mkdirSync(join(at, '..'), { recursive: true })
    writeFileSync(at, text)
  }
}

describe('a command in a private view', () => {
  real('changes nothing in the workspace, and its changes are listed with their states before and after', async () => {
    using box = await confined()
    write(box, { kept: 'kept', edited: 'old', removed: 'gone' })
    const { view, code, ended } = await box.change(
      'echo new > edited; rm removed; mkdir folder; echo x > folder/made; ln -s kept link; cat edited',
    )
    expect([code, ended]).toEqual([0, expect.objectContaining({ mode: 'transaction' })])
    expect(readdirSync(box.workspace).toSorted()).toEqual(['edited', 'kept', 'removed'])
    expect(readFileSync(join(box.workspace, 'edited'), 'utf8')).toBe('old')
    const file = (text: string) => ({ kind: 'file' as const, mode: 0o644, size: text.length, sha256: sha256(text) })
    expect(await view.changes()).toEqual([
      { path: 'edited', before: file('old'), after: file('new\n') },
      { path: 'folder', after: { kind: 'folder', mode: 0o755 } },
      { path: 'folder/made', after: file('x\n') },
      { path: 'link', after: { kind: 'link', mode: 0o777, target: 'kept' } },
      { path: 'removed', before: file('gone') },
    ])
  })

  real('leaves nothing behind when its view is dropped', async () => {
    using box = await confined()
    const { view } = await box.change('mkdir -p a/b; echo x > a/b/c; chmod 0 a/b a')
    expect(lstatSync(view.folder).mode & 0o777).toBe(0o700)
    expect(paths(await view.changes())).toEqual(['a', 'a/b', 'a/b/c'])
    view.drop()
    expect(existsSync(view.folder)).toBe(false)
  })

  real('does not see what an earlier command left in its own view', async () => {
    using box = await confined()
    await box.change('echo x > made')
    expect((await box.change('ls -A')).stdout).toBe('')
  })

  real('sees the workspace as it is when it starts, also in a sandbox that waited', async () => {
    using box = await confined()
    write(box, { file: 'old' })
    await box.change(':')
    await Bun.sleep(30)
    write(box, { file: 'new', 'folder/other': 'more' })
    expect((await box.change('cat file folder/other')).stdout).toBe('newmore')
  })

  real('may replace anything by anything', async () => {
    using box = await confined()
    write(box, { 'folder/a': 'a', 'folder/sub/b': 'b', file: 'f' })
    symlinkSync('file', join(box.workspace, 'link'))
    const script = 'rm -r folder; echo now a file > folder; rm file; mkdir file; echo x > file/in; rm link; mkdir link'
    const changes = await (await box.change(script)).view.changes()
    expect(changes.map(({ path, before, after }) => [path, before?.kind, after?.kind])).toEqual([
      ['file', 'file', 'folder'],
      ['file/in', undefined, 'file'],
      ['folder', 'folder', 'file'],
      ['folder/a', 'file', undefined],
      ['folder/sub', 'folder', undefined],
      ['folder/sub/b', 'file', undefined],
      ['link', 'link', 'folder'],
    ])
  })

  real('lists what disappears with a folder that is made anew', async () => {
    using box = await confined()
    write(box, { 'folder/same': 'same', 'folder/gone': 'gone', 'folder/sub/deep': 'deep' })
    const { view } = await box.change('rm -r folder; mkdir folder folder/sub; printf same > folder/same; echo new > folder/sub/new')
    const changes = await view.changes()
    expect(changes.map(({ path, before, after }) => [path, before?.kind, after?.kind])).toEqual([
      ['folder/sub/new', undefined, 'file'],
      ['folder/sub/deep', 'file', undefined],
      ['folder/gone', 'file', undefined],
    ])
  })
})
