import { describe, expect, test } from 'bun:test'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { confined, hasBubblewrap, place } from './fixture.ts'
import { install } from './install.ts'
import { misplaced, parseMounts } from './verify.ts'

if (!hasBubblewrap()) console.warn(`the mounts of a real sandbox are not looked at: ${install}`)
const real = test.if(hasBubblewrap())

/** A table in the kernel's format: the system is on 8:1, the workspace on 8:2, and another disk inside it on 8:3. */
const lines = (...more: readonly string[]) =>
  parseMounts(
    [
      '20 1 0:30 / / ro - tmpfs tmpfs rw',
      '21 20 8:1 /usr /usr ro - ext4 /dev/a rw',
      '22 20 8:2 /people/me/w\\040s /home/me/w\\040s rw - ext4 /dev/b rw',
      '23 22 8:3 /cache /home/me/w\\040s/disk rw - ext4 /dev/c rw',
      ...more,
    ].join('\n'),
  )
const at = '/home/me/w s'

describe('a mount is where it belongs', () => {
  test.each([
    ['below the workspace', '24 22 8:2 /people/me/w\\040s/sub/.npmrc /home/me/w\\040s/sub/.npmrc ro', 'sub/.npmrc'],
    ['below another disk in it', '24 23 8:3 /cache/.npmrc /home/me/w\\040s/disk/.npmrc ro', 'disk/.npmrc'],
  ])('%s', (_, line, path) => expect(misplaced(lines(line), [join(at, path)])).toBeUndefined())

  test.each([
    ['it is missing', '24 22 8:2 /people/me/.npmrc /home/me/.npmrc ro'],
    ['something from outside lies there', '24 22 8:2 /people/me/.npmrc /home/me/w\\040s/sub/.npmrc ro'],
    ['the same path of another disk lies there', '24 22 8:1 /people/me/w\\040s/sub/.npmrc /home/me/w\\040s/sub/.npmrc ro'],
    [
      'a later mount hides it',
      '24 22 8:2 /people/me/w\\040s/sub/.npmrc /home/me/w\\040s/sub/.npmrc ro\n25 22 8:2 /x /home/me/w\\040s/sub/.npmrc ro',
    ],
  ])('not when %s', (_, line) =>
    expect(misplaced(lines(...line.split('\n')), [join(at, 'sub/.npmrc')])).toContain('sub/.npmrc" was changed while'),
  )
})

describe('in a real sandbox', () => {
  const plant = (folder: string) => {
    mkdirSync(join(folder, 'sub'), { recursive: true })
    writeFileSync(join(folder, 'sub/.npmrc'), 'mine')
  }

  real('commands run beside a protected name below a folder, one after the other and many at once', async () => {
    using ground = place({ name: 'with space é' })
    plant(ground.workspace)
    using box = await confined({ workspace: ground.workspace })
    const all = await Promise.all(
      Array.from({ length: 5 }, () => box.run('cat sub/.npmrc; echo x > sub/.npmrc', { cwd: ground.workspace })),
    )
    for (const ran of [...all, await box.run('cat sub/.npmrc; echo x > sub/.npmrc', { cwd: ground.workspace })]) {
      expect(ran).toMatchObject({ code: 2, stdout: 'mine' })
      expect(ran.stderr).toContain('Read-only file system')
    }
  })

  real('a folder that became a link to the outside since it was looked at brings nothing of there inside', async () => {
    using ground = place()
    const { root, workspace } = ground
    plant(workspace)
    writeFileSync(join(root, '.npmrc'), 'secret-bytes')
    using box = await confined({ workspace })
    expect((await box.run('cat sub/.npmrc; echo x > sub/.npmrc', { cwd: ground.workspace })).stdout).toBe('mine')
    renameSync(join(workspace, 'sub'), join(workspace, 'old'))
    symlinkSync('..', join(workspace, 'sub'))
    const { stdout } = await box.run(`cat sub/.npmrc '${root}/.npmrc'; echo end`, { cwd: workspace })
    expect(stdout).toBe('end\n')
  })
})
