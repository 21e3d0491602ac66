//! The readers of what other processes say, for those who try to break them.

use crate::Role;
use crate::payload::Stage;
use crate::python::read_frames;
use crate::reply::{Expect, Reply};
use tenure_core::hook::Point;

/// Reads the bytes as frames of a Python worker.
pub fn frames(data: &[u8]) {
    read_frames(data);
}

/// Reads the bytes as the reply of a hook, at every point.
pub fn reply(data: &[u8]) {
    for point in Point::ALL {
        for role in [Role::Guard, Role::Other] {
            for stage in [Stage::Before, Stage::After] {
                // What is wrong with it is not looked at.
                let _ = Reply::parse(data, &Expect::of_command(point, role, stage));
            }
        }
    }
}
