/** Makes a picture fit for a model: recognised by its content, scaled, and small enough for every vendor. */

import { pictureKind } from '../kit/content/picture-kind.ts'
import { errnoOf, errorText } from '../kit/errors.ts'
import type { Picture } from '../runtime/port.ts'

export type FittedPicture =
  | { readonly ok: true; readonly picture: Picture }
  | { readonly ok: false; readonly why: string; readonly isPicture: boolean }

/** The longest file that is read. */
export const mostFileBytes = 64 * 1024 * 1024
/** Vendors scale down what is longer, in pixels. */
const longestSide = 1_568
/** Vendors take 5 MB of base64 at least; a conversation sends its pictures again with each request. */
const mostSentBytes = 1_572_864
/** A decoded picture takes four bytes a pixel. */
const mostPixels = 100_000_000

const mib = (bytes: number) => `${Math.ceil(bytes / 1_048_576)} MiB`

/** A picture that is small enough keeps its bytes. Never rejects. */
export async function pictureFrom(bytes: Uint8Array): Promise<FittedPicture> {
  const kind = pictureKind(bytes)
  const refuse = (why: string) => ({ ok: false, why, isPicture: kind !== undefined }) as const
  if (kind === undefined) return refuse('its content is not a PNG, JPEG, WebP or GIF picture, whatever its name')
  if (bytes.length > mostFileBytes) return refuse(`it has ${mib(bytes.length)}; at most ${mib(mostFileBytes)} are read`)
  const open = () => new Bun.Image(bytes, { maxPixels: mostPixels })
  const fitted = (type: Picture['type'], body: Uint8Array) => ({ ok: true, picture: { type, base64: body.toBase64() } }) as const
  try {
    const { width, height } = await open().metadata()
    if (bytes.length <= mostSentBytes && Math.max(width, height) <= longestSide) {
      // A picture that cannot be decoded would fail this request and every later one.
      await open().resize(1, 1).png().bytes()
      return fitted(kind.type, bytes)
    }
    const scaled = () => open().resize(longestSide, longestSide, { fit: 'inside', withoutEnlargement: true })
    const png = kind.ending === 'jpg' ? undefined : await scaled().png().bytes()
    return png && png.length <= mostSentBytes
      ? fitted('image/png', png)
      : fitted('image/jpeg', await scaled().jpeg({ quality: 85 }).bytes())
  } catch (error) {
    if (errnoOf(error) === 'ERR_IMAGE_TOO_MANY_PIXELS') return refuse(`it has more than ${mostPixels / 1_000_000} million pixels`)
    return refuse(`it is a broken ${kind.ending.toUpperCase()} picture (${errorText(error)})`)
  }
}
