/** Estimates tokens before a call, and after one that did not say what it used: rather too many than too few. */

import { isObject } from '../../kit/json.ts'
import { fieldsOf } from './wires/counts.ts'
import type { Fields, Seen } from './wires/wire.ts'

/** JSON and code have more tokens a byte than prose, which has one in four. */
const bytesPerInputToken = 3.5
const bytesPerOutputToken = 3
/** A picture costs by its size on the screen, not by its bytes. */
const tokensPerImage = 2_500
/** A vendor that says more is wrong. */
const mostTokens = 1e9
const imageTypes: readonly unknown[] = ['image', 'image_url', 'input_image']

/** @param body the parsed request */
export function estimatedInput(body: unknown): number {
  const images = { count: 0, bytes: 0 }
  countImages(body, images)
  const bytes = Buffer.byteLength(JSON.stringify(body)) - images.bytes
  return Math.ceil(bytes / bytesPerInputToken) + images.count * tokensPerImage
}

function countImages(value: unknown, images: { count: number; bytes: number }): void {
  if (Array.isArray(value)) for (const item of value) countImages(item, images)
  if (!isObject(value)) return
  const data = imageTypes.includes(value.type) ? pictureOf(value) : undefined
  if (typeof data === 'string') {
    images.count += 1
    images.bytes += Buffer.byteLength(data)
  } else for (const field of Object.values(value)) countImages(field, images)
}

/** The picture itself, in base64, as an address or by its name at the vendor: what else stands beside it is text like any other. */
function pictureOf({ image_url, source, file_id }: Fields): unknown {
  const { data, url, file_id: named } = fieldsOf(source)
  return typeof image_url === 'string' ? image_url : (fieldsOf(image_url).url ?? data ?? url ?? named ?? file_id)
}

export type TokenEstimate = { readonly input: number; readonly output: number }

/**
 * What a call used: the vendor's count when it is final; what was seen when the answer ended without one. Otherwise nobody knows what the
 * vendor wrote, or thought without showing it: then it is all that was reserved.
 */
export function tokensOf(seen: Seen, reserved: TokenEstimate): number {
  const counted = seen.input + seen.output
  const output = Math.max(seen.output, Math.ceil(seen.bytes / bytesPerOutputToken), seen.ended ? 0 : reserved.output)
  const atLeast = Math.max(seen.input, reserved.input) + output
  return Math.min(seen.whole && counted > 0 ? counted : atLeast, mostTokens)
}
