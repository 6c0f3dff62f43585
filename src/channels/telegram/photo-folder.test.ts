import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { photoPath, savePhoto } from './complete-text.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'braidclaw-photos-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const plenty = { most: 100, mostBytes: 1_000_000 }
const bytes = Buffer.from('a picture')
const save = (chat: string, name: string, keep = plenty) => {
  savePhoto(join(folder, 'tmp'), { chat, name, bytes }, keep)
  return photoPath(join(folder, 'tmp'), { chat, name })
}

describe('what is never written', () => {
  test.each([
    ['..', '1.jpg'],
    ['1/../..', '1.jpg'],
    ['', '1.jpg'],
    ['1', '../1.jpg'],
    ['1', '1.sh'],
    ['1', '1.jpg\0'],
    ['1', '.jpg'],
  ])('%p %p', (chat, name) => {
    expect(() => save(chat, name)).toThrow('is not the name of a photo')
    expect(readdirSync(folder)).toEqual([])
  })

  test.each(['telegram', 'telegram/photos', 'telegram/photos/5'])('through a link in place of %s', (link) => {
    const elsewhere = join(folder, 'elsewhere')
    mkdirSync(elsewhere)
    mkdirSync(join(folder, 'tmp', link, '..'), { recursive: true, mode: 0o700 })
    symlinkSync(elsewhere, join(folder, 'tmp', link))
    expect(() => save('5', '1.jpg')).toThrow()
    expect(readdirSync(elsewhere)).toEqual([])
  })

  test('into a folder where others may write', () => {
    mkdirSync(join(folder, 'tmp/telegram'), { recursive: true })
    chmodSync(join(folder, 'tmp/telegram'), 0o777)
    expect(() => save('5', '1.jpg')).toThrow('others may write there')
  })
})

test('a photo is ours alone, its path is the one that was said, and nothing else is left behind', () => {
  const path = save('-100123', '7.jpg')
  expect(path).toBe(join(folder, 'tmp/telegram/photos/-100123/7.jpg'))
  expect([statSync(path).mode & 0o777, readFileSync(path), readdirSync(join(path, '..'))]).toEqual([0o600, bytes, ['7.jpg']])
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
})

test('the oldest go first, by number and by room, in whatever chat they are; the newest always stays', () => {
  const old = (chat: string, name: string, at: number) => utimesSync(save(chat, name), at, at)
  old('1', '1.jpg', 1)
  old('2', '2.jpg', 2)
  old('2', '3.jpg', 3)
  save('3', '4.jpg', { ...plenty, most: 3 })
  const left = (chat: string) =>
    existsSync(join(folder, 'tmp/telegram/photos', chat)) ? readdirSync(join(folder, 'tmp/telegram/photos', chat)) : 'gone'
  expect([left('1'), left('2'), left('3')]).toEqual(['gone', ['2.jpg', '3.jpg'], ['4.jpg']])
  save('3', '5.jpg', { ...plenty, mostBytes: 1 })
  expect([left('2'), left('3')]).toEqual(['gone', ['5.jpg']])
})
