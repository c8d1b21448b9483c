// Where a picture lies in the memory of the device, as gpu/src/picture.rs has it.
#ifndef MEETPOINT_PICTURE
#define MEETPOINT_PICTURE

// Three planes of bytes: red, green and blue.
struct PictureDescriptor {
    u64 address;
    u32 row_stride, plane_stride;
    u32 width, height;
};

#endif
